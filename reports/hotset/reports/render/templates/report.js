// Draws the charts; each specification takes its colours from the page's CSS variables.
"use strict";
const specs = JSON.parse(document.getElementById("hotset-charts").textContent);
const drawn = [...document.querySelectorAll("[data-chart]")].map((place) =>
  window
    .vegaEmbed(place, specs[place.dataset.chart], {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      ast: true, // interpret expressions: the page's policy forbids eval
      tooltip: { theme: "custom", formatTooltip: tooltip },
    })
    // The place itself is the image, with the words for it.
    .then(() => place.querySelector("svg").setAttribute("aria-hidden", "true"))
    .catch((error) => {
      place.textContent = `This chart could not be drawn (${error.message}); its table is below.`;
    }),
);
Promise.all(drawn).then(() => {
  document.documentElement.dataset.drawn = drawn.length;
});

function tooltip(value, sanitize) {
  if (typeof value !== "object" || value === null) return sanitize(String(value));
  const rows = Object.entries(value).map(
    ([name, figure]) => `<tr><td class="key">${sanitize(name)}</td><td>${sanitize(String(figure))}</td></tr>`,
  );
  return `<table>${rows.join("")}</table>`;
}

// Paper cannot unfold a table.
const folded = new Set();
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not([open])")) {
    folded.add(details);
    details.open = true;
  }
});
window.addEventListener("afterprint", () => {
  for (const details of folded) details.open = false;
  folded.clear();
});
