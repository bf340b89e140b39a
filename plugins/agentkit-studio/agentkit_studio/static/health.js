"use strict";
// Draws the charts of the health page; the tables below them have the same numbers.
(async () => {
  const charts = document.querySelector("[data-health]");
  if (!charts) return;
  const record = await (await fetch(charts.dataset.health)).json();
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();

  const axis = { stroke: colour("dim"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  const line = (name, more) => ({ stroke: colour(name), width: 2, points: { show: false }, ...more });

  const drawCanary = (place, one) => {
    const data = [one.block, one.alarm, one.no_worse, one.block.map(() => one.line)];
    const most = Math.max(one.line, ...one.alarm, ...one.no_worse), least = Math.min(0, ...one.alarm, ...one.no_worse);
    place.replaceChildren();
    return new uPlot({
      width: place.clientWidth, height: 190, legend: { show: false }, cursor: { y: false },
      series: [{}, line("bad"), line("good"), line("ink", { width: 1, dash: [6, 4] })],
      scales: { x: { time: false }, y: { range: [least * 1.1, most * 1.15] } },
      axes: [{ ...axis, size: 30 }, { ...axis, size: 52 }],
    }, data, place);
  };

  const draw = (place) => {
    if (place.dataset.canary) return drawCanary(place, record.canaries[+place.dataset.canary]);
    const { x, y, low, high } = place.dataset;
    const percent = "percent" in place.dataset;
    const rows = (x === "day" ? record.days : record.versions).filter((row) => row[y] !== null);
    const scale = percent ? 100 : 1;
    const written = (value) => `${+value.toPrecision(3)}${percent ? " %" : ""}`;
    place.classList.toggle("few", rows.length < 2);
    if (rows.length < 2) { // a line takes two
      place.textContent = rows.length ? `${written(rows[0][y] * scale)} ${x === "day" ? "on" : "in version"} ${rows[0][x]}` : "No numbers yet.";
      return;
    }
    const column = (name) => rows.map((row) => (row[name] === null ? null : row[name] * scale));
    const xs = rows.map((row) => (x === "day" ? Date.parse(row.day) / 1000 : row.version));
    const main = line("accent", { points: { show: rows.length < 40, size: 7 } });
    const bound = line("accent", { stroke: "transparent" });
    const series = low ? [{}, bound, bound, main] : high ? [{}, main, line("dim", { dash: [5, 4] })] : [{}, main]; // the line is drawn over its interval
    const data = low ? [xs, column(low), column(high), column(y)] : high ? [xs, column(y), column(high)] : [xs, column(y)];
    const bands = low ? [{ series: [2, 1], fill: `${colour("accent")}33` }] : [];
    const day = (at) => new Date(at * 1000).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
    const options = {
      width: place.clientWidth, height: 190, series, bands, legend: { show: false }, cursor: { y: false },
      scales: { x: { time: x === "day" }, y: percent && low ? { range: [0, 100] } : { range: (_, min, max) => [0, Math.max(max * 1.1, percent ? 1 : 1e-6)] } },
      axes: [{ ...axis, size: 30, values: (_, ticks) => ticks.map((one) => (x === "day" ? day(one) : Number.isInteger(one) ? one : "")) }, { ...axis, size: 52, values: (_, ticks) => ticks.map(written) }],
    };
    place.replaceChildren();
    return new uPlot(options, data, place);
  };

  const places = [...charts.querySelectorAll(".chart")];
  let drawn = places.map(draw);
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { for (const one of drawn) one?.destroy(); drawn = places.map(draw); }, 150);
  });
})();
