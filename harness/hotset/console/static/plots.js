// Charts over time, in the page's own colours.
"use strict";

const Plots = (() => {
  const units = {
    percent: (value) => (value == null ? "–" : `${(100 * value).toFixed(0)} %`),
    rate: (value) => (value == null ? "–" : value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 })),
    megabytes: (value) => (value == null ? "–" : (value / 1e6).toFixed(1)),
  };
  const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");
  const dashes = [[], [6, 4], [2, 3], [10, 3, 2, 3]];

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // series: [{label, colour (a variable's name), dash}], one line each; x in seconds.
  function create(place, unit, series) {
    const write = units[unit];
    const when = place.dataset.time === "seconds" ? (seconds) => `${seconds} s` : clock;
    const axis = () => ({ stroke: colour("--ink-2"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif" });
    const options = {
      width: place.clientWidth, height: 170, padding: [8, 28, 0, 0], legend: { live: false }, cursor: { y: false },
      scales: { x: { time: false }, y: { range: (_, low, high) => (unit === "percent" ? [0, 1] : [0, (high || 1) * 1.1]) } },
      axes: [{ ...axis(), space: 90, values: (_, ticks) => ticks.map(when) }, { ...axis(), size: 64, values: (_, ticks) => ticks.map(write) }],
      series: [{}, ...series.map((one) => ({
        label: one.label, stroke: () => colour(one.colour), width: 1.75, dash: dashes[one.dash ?? 0],
        value: (_, value) => write(value), points: { show: (plot) => plot.data[0].length < 4 }, spanGaps: false,
      }))],
    };
    const plot = new uPlot(options, [[], ...series.map(() => [])], place);
    new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 170 })).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const one of plot.axes) one.stroke = () => colour("--ink-2");
      plot.redraw(false, true);
    });
    return plot;
  }

  return { create };
})();
