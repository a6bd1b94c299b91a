// Sizing: the marker on the curve, the row and the sentence follow the slider, to the nearest row.
"use strict";

document.addEventListener("input", (event) => {
  const slider = event.target;
  if (slider.id !== "sizing-at") return;
  const rows = [...document.querySelectorAll("#curve tbody tr")];
  const distance = (row) => Math.abs(row.dataset.x - slider.value);
  const nearest = rows.reduce((one, other) => (distance(other) < distance(one) ? other : one));
  rows.forEach((row) => row.removeAttribute("aria-current"));
  nearest.setAttribute("aria-current", "true");
  const marker = document.getElementById("marker");
  marker.setAttribute("cx", nearest.dataset.x);
  marker.setAttribute("cy", nearest.dataset.y);
  document.getElementById("chosen").textContent = nearest.dataset.words;
  slider.setAttribute("aria-valuetext", nearest.dataset.words);
});

// By key from row to row, as they are not equally far apart.
document.addEventListener("keydown", (event) => {
  const slider = event.target;
  const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 };
  if (slider.id !== "sizing-at" || !(event.key in steps)) return;
  event.preventDefault();
  const rows = [...document.querySelectorAll("#curve tbody tr")];
  const at = rows.findIndex((row) => row.hasAttribute("aria-current")) + steps[event.key];
  slider.value = rows[Math.min(Math.max(at, 0), rows.length - 1)].dataset.x;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
});
