// The overview: what the console sends, put in its place; the charts keep a quarter of an hour.
"use strict";

(() => {
  const live = document.getElementById("live");
  const charts = document.getElementById("charts");
  const tpm = document.getElementById("tpm");
  const span = 15 * 60;
  const names = { hit_ratio: "", reads: "reads", writes: "writes", read_bytes: "read", written_bytes: "written" };
  const hues = ["--accelerated", "--all-flash", "--in-memory", "--flash-volume"];
  let points = [];
  let plots = [];
  let shown = null;
  let tpmPlot;

  function draw() {
    const disks = [...new Set(points.flatMap((point) => Object.keys(point.disks)))];
    tpm.hidden = points.every((point) => point.tpm == null);
    charts.hidden = disks.length === 0 && tpm.hidden;
    const times = points.map((point) => point.at);
    if (!tpm.hidden) {
      tpmPlot ??= Plots.create(tpm.querySelector(".plot"), "rate", [{ label: "TPM", colour: "--accelerated" }]);
      tpmPlot.setData([times, points.map((point) => point.tpm)]);
    }
    if (shown !== disks.join()) rebuild(disks);
    for (const { plot, lines } of plots) {
      plot.setData([times, ...lines.map(({ disk, key }) => points.map((point) => point.disks[disk]?.[key] ?? null))]);
    }
  }

  function rebuild(disks) {
    shown = disks.join();
    plots.forEach(({ plot }) => plot.destroy());
    const places = [...document.querySelectorAll("[data-plot]")];
    for (const place of places) place.closest("figure").hidden = disks.length === 0;
    if (disks.length === 0) plots = [];
    else plots = places.map((place) => {
      const keys = place.dataset.plot.split(",");
      const lines = disks.flatMap((disk, at) => keys.map((key, dash) => ({
        disk, key, dash, colour: hues[(disks.length > 1 ? at : dash) % hues.length],
        label: [disks.length > 1 || !names[key] ? disk : "", names[key]].filter(Boolean).join(" "),
      })));
      return { lines, plot: Plots.create(place, place.dataset.unit, lines) };
    });
  }

  const stream = new EventSource(live.dataset.stream);
  stream.addEventListener("history", (event) => { points = JSON.parse(event.data); draw(); });
  stream.addEventListener("sample", (event) => {
    const { html, point } = JSON.parse(event.data);
    htmx.swap({ target: live, text: html, swap: "innerMorph" });
    points = [...points, point].filter((one) => one.at > point.at - span);
    draw();
  });
  stream.addEventListener("ended", () => { stream.close(); location.assign("/login?expired=1"); });
  stream.addEventListener("error", () => {
    live.dataset.stale = "true";
    // Refused, not merely out of reach: the page itself says why.
    if (stream.readyState === EventSource.CLOSED) location.reload();
  });
  stream.addEventListener("open", () => { delete live.dataset.stale; });
})();
