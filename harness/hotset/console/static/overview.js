// The overview: what the console sends of the present, put in its place.
"use strict";

(() => {
  const live = document.getElementById("live");
  const stream = new EventSource(live.dataset.stream);
  stream.addEventListener("sample", (event) => {
    htmx.swap({ target: live, text: JSON.parse(event.data).html, swap: "innerMorph" });
  });
  stream.addEventListener("ended", () => { stream.close(); location.assign("/login?expired=1"); });
  stream.addEventListener("error", () => {
    live.dataset.stale = "true";
    // Refused, not merely out of reach: the page itself says why.
    if (stream.readyState === EventSource.CLOSED) location.reload();
  });
  stream.addEventListener("open", () => { delete live.dataset.stale; });
})();
