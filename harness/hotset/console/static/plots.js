// Charts over time, in the page's own colours.
"use strict";

const Plots = (() => {
  const units = {
    percent: (value) => (value == null ? "–" : `${(100 * value).toFixed(0)} %`),
    rate: (value) => (value == null ? "–" : value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 })),
    megabytes: (value) => (value == null ? "–" : (value / 1e6).toFixed(1)),
    bytes: (value) => {
      if (value == null) return "–";
      const power = value < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
      return `${(value / 1024 ** power).toLocaleString("en", { maximumFractionDigits: 1 })} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
    },
    ms: (value) => (value == null ? "–" : value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 })),
  };
  const format = (options) => (seconds) => new Date(1000 * seconds).toLocaleString("en-GB", options);
  const times = {
    clock: format({ hour: "2-digit", minute: "2-digit", second: "2-digit" }),
    minutes: format({ hour: "2-digit", minute: "2-digit" }),
    days: format({ weekday: "short", day: "numeric" }),
    seconds: (seconds) => `${seconds} s`,
  };
  const steps = { // of the time axis, in seconds
    minutes: [60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400],
    days: [86400, 172800, 345600, 604800],
  };
  const powersOfTwo = Array.from({ length: 50 }, (_, power) => 2 ** power);
  const dashes = [[], [6, 4], [2, 3], [10, 3, 2, 3]];
  const borders = ["solid", "dashed", "dotted", "double"]; // of the legend's marks

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // What was not recorded, as bands below the lines.
  function shade(plot, { unknown }) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = colour("--line");
    for (const [begin, end] of unknown) {
      const left = Math.max(bbox.left, plot.valToPos(begin, "x", true));
      const right = Math.min(bbox.left + bbox.width, plot.valToPos(end, "x", true));
      if (right > left) ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    ctx.restore();
  }

  // Events as upright lines with the numbers of the list, as far as there is room for these.
  function mark(plot, { events }) {
    const { ctx, bbox } = plot;
    const scale = devicePixelRatio;
    let taken = -Infinity;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--ink-2");
    ctx.lineWidth = scale;
    ctx.setLineDash([2 * scale, 3 * scale]);
    ctx.font = `${11 * scale}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    for (const { at, number } of events) {
      const x = Math.round(plot.valToPos(at, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const half = ctx.measureText(number).width / 2 + 2 * scale;
      if (x - half > taken) {
        ctx.fillText(number, x, bbox.top - 3 * scale);
        taken = x + half;
      }
    }
    ctx.restore();
  }

  // Ticks at whole hours and days of this clock, not at multiples of so many seconds since 1970.
  function timeAxis(time) {
    if (!(time in steps)) return { space: 90, size: 32 };
    return {
      space: 60, size: 32, incrs: steps[time],
      splits: (_, axis, low, high, step) => {
        const found = [];
        const shift = 60 * new Date(1000 * low).getTimezoneOffset();
        for (let at = Math.ceil((low - shift) / step) * step + shift; at <= high; at += step) found.push(at);
        return found;
      },
    };
  }

  // series: [{label, colour (a variable's name), dash}], one line each; x in seconds. past: gives
  // what the whole chart is of: from begin to end, with events and what is unknown.
  function create(place, unit, series, { time = place.dataset.time ?? "clock", past } = {}) {
    const write = units[unit];
    const when = times[time];
    const axis = () => ({ stroke: colour("--ink-2"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif" });
    const hooks = past && { drawClear: [(plot) => shade(plot, past())], draw: [(plot) => mark(plot, past())] };
    const options = {
      hooks: hooks ?? {},
      width: place.clientWidth, height: 170, padding: [past ? 16 : 8, 28, 0, 0], legend: { live: false, markers: { dash: (_, at) => borders[series[at - 1]?.dash ?? 0] } }, cursor: { y: false },
      scales: { x: { time: false, ...(past && { range: () => [past().begin, past().end] }) }, y: { range: (_, low, high) => (unit === "percent" ? [0, 1] : [0, (high || 1) * 1.1]) } },
      axes: [{ ...axis(), ...timeAxis(time), values: (_, ticks) => ticks.map(when) }, { ...axis(), size: 64, ...(unit === "bytes" && { incrs: powersOfTwo }), values: (_, ticks) => ticks.map(write) }],
      series: [{}, ...series.map((one) => ({
        label: one.label, stroke: () => colour(one.colour), width: 1.75, dash: dashes[one.dash ?? 0],
        value: (_, value) => write(value), points: { show: (plot) => plot.data[0].length < 4 }, spanGaps: false,
      }))],
    };
    const watching = new AbortController();
    const sized = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 170 }));
    // Or each chart that was destroyed would be kept, and drawn, for as long as the page is.
    options.hooks.destroy = [() => { sized.disconnect(); watching.abort(); }];
    const plot = new uPlot(options, [[], ...series.map(() => [])], place);
    sized.observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const one of plot.axes) one.stroke = () => colour("--ink-2");
      plot.redraw(false, true);
    }, watching);
    return plot;
  }

  return { create };
})();
