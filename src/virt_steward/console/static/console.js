// Live updates of the open page, which keep focus and input. All pages also work without JavaScript.
"use strict";

const KEPT = new Set(["open", "value", "checked"]);  // attributes that the person changes, not the server
const FIELDS = "input:not([type=hidden]), select, textarea";
const IDENTITY = ["name", "type", "action", "formaction", "aria-labelledby", "aria-label"];

// Which elements are the same before and after an update. A button with another action is another button: one that has the
// focus must not become it under the fingers.
function identity(node) {
  if (node.id) return `${node.nodeName}#${node.id}`;
  return [node.nodeName, ...IDENTITY.map((name) => node.getAttribute(name))].join("|");
}

function morph(old, fresh) {
  if (old.dataset.plan && old.dataset.plan !== fresh.dataset.plan) {
    outdated(old);  // a decision must be about the plan that was shown
    return;
  }
  if (old.nodeName === "TIME" && old.dateTime === fresh.dateTime) return;
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !KEPT.has(name)) old.removeAttribute(name);
  }
  const isField = old.matches(FIELDS);
  for (const { name, value } of [...fresh.attributes]) {
    if (isField && KEPT.has(name)) continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.nodeName === "PROGRESS") old.value = fresh.value;
  if (!isField) morphChildren(old, fresh);
}

// Elements are matched by identity, the first with the first, and so on. An element that has the focus is never moved, because
// it would lose it: its siblings are moved around it. What somebody has typed into stays, even if the update has no such element.
function morphChildren(old, fresh) {
  const matches = matched(old, fresh);
  const staying = new Set(matches.values());
  const kept = new Set();
  for (const one of [...old.children]) {
    if (staying.has(one)) continue;
    if (!isInUse(one)) one.remove();
    else kept.add(one);
  }
  for (const one of kept) outdated(one);
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    while (kept.has(at)) at = at.nextSibling;
    const known = wanted.nodeType === Node.ELEMENT_NODE ? matches.get(wanted) : textAt(at);
    while (known && at !== known && (textAt(at) || known.contains(document.activeElement))) {
      const passed = at;
      at = at.nextSibling;
      if (textAt(passed)) passed.remove();
      else old.append(passed);
    }
    const node = known || wanted;
    if (node !== at) old.insertBefore(node, at);
    if (known && textAt(known) && known.data !== wanted.data) known.data = wanted.data;
    if (known && !textAt(known)) morph(known, wanted);
    at = node.nextSibling;
  }
  while (at) {
    const passed = at;
    at = at.nextSibling;
    if (!kept.has(passed)) passed.remove();
  }
}

function matched(old, fresh) {
  const known = new Map();
  for (const one of old.children) {
    const key = identity(one);
    known.set(key, [...(known.get(key) || []), one]);
  }
  const matches = new Map();
  for (const wanted of fresh.children) {
    const found = (known.get(identity(wanted)) || []).shift();
    if (found) matches.set(wanted, found);
  }
  return matches;
}

function textAt(node) {
  return node && node.nodeType !== Node.ELEMENT_NODE ? node : null;
}

function isInUse(element) {
  if (element.dataset.plan && element.querySelector("button")) return true;  // a decision that cannot be sent any more says why
  const fields = [...element.querySelectorAll(FIELDS)];
  if (element.matches(FIELDS)) fields.push(element);
  return fields.some((one) => one === document.activeElement || isChanged(one));
}

function isChanged(field) {
  if (field.nodeName === "SELECT") {
    const first = [...field.options].findIndex((one) => one.defaultSelected);
    return field.selectedIndex !== Math.max(first, 0);
  }
  return field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
}

// The person keeps what was typed, but cannot send it. The next update that has the same plan again ends this.
function outdated(element) {
  for (const warning of element.querySelectorAll(".stale")) warning.hidden = false;
  const forms = element.matches("form") ? [element] : [...element.querySelectorAll("form")];
  for (const form of forms.filter((one) => one.method === "post")) {
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  }
}

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];

function updateTimes() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    const seconds = (moment - Date.now()) / 1000;
    const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size);
    const words = unit ? relative.format(Math.round(seconds / unit[1]), unit[0]) : "just now";
    if (time.textContent !== words) time.textContent = words;
    time.title = moment.toLocaleString();
  }
}

function showStatus(text) {
  const place = document.getElementById("liveness");
  if (place && place.textContent !== text) place.textContent = text;
}

function show({ title, nav, page }) {
  for (const [id, html] of [["nav", nav], ["page", page]]) {
    const fresh = document.createElement("div");
    fresh.innerHTML = html;  // rendered and escaped by the server
    morphChildren(document.getElementById(id), fresh);
  }
  document.title = title;
  updateTimes();
  showStatus("Live");
}

const PAUSE = 5000;  // milliseconds before the stream is opened again
let source = null;

function open() {
  if (source || document.hidden || !document.body.dataset.live) return;
  source = new EventSource(document.body.dataset.live);
  source.addEventListener("page", (event) => show(JSON.parse(event.data)));
  source.addEventListener("trouble", (event) => showStatus(event.data));
  source.addEventListener("bye", (event) => {
    close();
    document.body.dataset.live = "";
    showStatus(event.data);
  });
  source.addEventListener("error", interrupted);
}

function interrupted(event) {
  if (event.target !== source) return;
  if (source.readyState !== EventSource.CLOSED) {
    showStatus("Not live: reconnecting");
    return;
  }
  close();  // not a stream: browsers give no reason and do not retry
  showStatus("Not live. Reload the page; you may have to sign in again");
  setTimeout(open, PAUSE);
}

function close() {
  if (source) source.close();
  source = null;
}

// Browsers allow few connections to one server, so hidden pages close theirs.
document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
window.addEventListener("pagehide", close);
window.addEventListener("pageshow", open);  // a page that the browser had kept
updateTimes();
setInterval(updateTimes, 20000);
open();
