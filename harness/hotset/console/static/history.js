// Charts of what was recorded: asked for again whenever there is more of it.
"use strict";

(() => {
  const charts = document.getElementById("charts");
  const told = document.getElementById("told");
  const tpm = document.getElementById("tpm");
  const places = [...charts.querySelectorAll("[data-plot]")];
  const names = { hit_ratio: "", reads: "reads", writes: "writes", read_bytes: "read", written_bytes: "written", read_ms: "reads", write_ms: "writes", size: "size", used: "used", dirty: "dirty" };
  const hues = ["--accelerated", "--all-flash", "--in-memory", "--flash-volume"];
  let found = null;
  let shown = null;
  let plots = [];
  let tpmPlot;

  const options = () => ({ time: "days" in charts.dataset ? "days" : "minutes", past: () => found });

  function draw() {
    tpm.hidden = found.tpm.every((value) => value == null);
    if (!tpm.hidden) {
      tpmPlot ??= Plots.create(tpm.querySelector(".plot"), "rate", [{ label: "TPM", colour: "--accelerated" }], options());
      tpmPlot.setData([found.at, found.tpm]);
    }
    const labels = found.disks.map(({ label }) => label).join();
    if (shown !== labels) rebuild(labels);
    for (const { plot, lines } of plots) plot.setData([found.at, ...lines.map(({ disk, key }) => found.disks[disk].values[key])]);
  }

  function rebuild(labels) {
    shown = labels;
    plots.forEach(({ plot }) => plot.destroy());
    for (const place of places) place.closest("figure").hidden = found.disks.length === 0;
    plots = found.disks.length === 0 ? [] : places.map((place) => {
      const keys = place.dataset.plot.split(",");
      const many = found.disks.length > 1;
      const lines = found.disks.flatMap(({ label }, disk) => keys.map((key, dash) => ({
        disk, key, dash, colour: hues[(many ? disk : dash) % hues.length],
        label: [many || !names[key] ? label : "", names[key]].filter(Boolean).join(" "),
      })));
      return { lines, plot: Plots.create(place, place.dataset.unit, lines, options()) };
    });
  }

  async function load() {
    let wait = 10;
    try {
      if (!document.hidden || found == null) {
        const answer = await fetch(charts.dataset.series);
        // Not logged in any more: the page itself leads to the log-in.
        if (answer.redirected) return location.reload();
        if (!answer.ok) throw new Error(answer.statusText);
        found = await answer.json();
        wait = found.again_s;
        htmx.swap({ target: told, text: found.html, swap: "innerMorph" });
        draw();
        delete charts.dataset.stale;
      }
    } catch {
      charts.dataset.stale = "true";
    }
    setTimeout(load, 1000 * wait);
  }

  load();
})();
