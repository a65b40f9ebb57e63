// What makes a page hard to use for some: returns one sentence for each thing that is wrong.
() => {
  const wrong = [];
  const shown = (one) => one.offsetParent !== null || getComputedStyle(one).position === "fixed";
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) wrong.push(`two elements are called ${id}`);
  if (document.querySelectorAll("h1").length !== 1) wrong.push("a page has one h1");
  for (const landmark of ["main", "header nav, main"]) {
    if (!document.querySelector(landmark)) wrong.push(`there is no ${landmark}`);
  }
  let level = 1;
  for (const head of document.querySelectorAll("h1, h2, h3")) {
    const next = Number(head.nodeName[1]);
    if (next > level + 1) wrong.push(`a heading is skipped before ${head.textContent}`);
    level = next;
  }
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (!field.labels.length && !field.getAttribute("aria-label")) wrong.push(`${field.name} has no label`);
  }
  for (const one of document.querySelectorAll("a, button")) {
    if (!one.textContent.trim()) wrong.push(`${one.outerHTML} says nothing`);
  }
  for (const one of document.querySelectorAll("table")) {
    if (!one.querySelector("th[scope]")) wrong.push("a table has no headers");
  }
  const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      const [, , , alpha = 1] = parts(colour);
      if (alpha === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  for (const one of document.querySelectorAll("body *")) {
    const says = [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!says || !shown(one) || one.closest(".sr, .skip, button:disabled")) continue;
    const [a, b] = [light(getComputedStyle(one).color), light(ground(one))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) wrong.push(`${contrast.toFixed(1)} is too little contrast: ${one.outerHTML.slice(0, 120)}`);
  }
  return wrong;
}
