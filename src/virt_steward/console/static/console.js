// Live updates of the open page, which keep focus and input. All pages also work without JavaScript.
"use strict";

const UNTOUCHED = new Set(["open", "hidden", "disabled", "value", "checked"]);  // state of the page, not of the server

function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(fresh.cloneNode(true));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.dataset.plan && old.dataset.plan !== fresh.dataset.plan) {
    outdated(old);  // a decision must be about the plan that was shown
    return;
  }
  if (old.nodeName === "TIME" && old.dateTime === fresh.dateTime) return;
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !UNTOUCHED.has(name)) old.removeAttribute(name);
  }
  const isField = old.matches("input:not([type=hidden]), select, textarea");
  for (const { name, value } of [...fresh.attributes]) {
    if (isField && UNTOUCHED.has(name)) continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.nodeName === "PROGRESS") old.value = fresh.value;
  if (!isField) morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    if (wanted.id) {
      const known = [...old.children].find((one) => one.id === wanted.id);
      if (known && known !== at) old.insertBefore(known, at);
      if (known) at = known;
      if (!known) {
        old.insertBefore(wanted.cloneNode(true), at);
        continue;
      }
    }
    if (!at) {
      old.appendChild(wanted.cloneNode(true));
      continue;
    }
    const next = at.nextSibling;
    if (at.id && !wanted.id) {
      old.insertBefore(wanted.cloneNode(true), at);
      continue;
    }
    morph(at, wanted);
    at = next;
  }
  while (at) {
    const next = at.nextSibling;
    if (at.dataset && at.dataset.plan) outdated(at);
    else at.remove();
    at = next;
  }
}

function outdated(form) {
  const warning = form.querySelector(".stale");
  if (warning) warning.hidden = false;
  for (const button of form.querySelectorAll("button")) button.disabled = true;
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
updateTimes();
setInterval(updateTimes, 20000);
open();
