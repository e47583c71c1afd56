// Replaces the drawings of question 5 by charts that can be zoomed. Where anything goes wrong, the drawing stays.
(function () {
  "use strict";

  function number(v) {
    if (v === null || v === undefined) return "–";
    var a = Math.abs(v);
    return a >= 10000 ? (v / 1000).toPrecision(3) + "k" : a >= 100 ? String(Math.round(v)) : String(Number(v.toPrecision(3)));
  }

  function seconds(v) {
    if (v === null || v === undefined) return "–";
    if (v === 0) return "0 s";
    var a = Math.abs(v);
    if (a < 1e-3) return number(v * 1e6) + " µs";
    if (a < 1) return number(v * 1e3) + " ms";
    return number(v) + " s";
  }

  // The colours are those of the drawing, so that both are alike in light and in dark.
  function color(figure, kind) {
    var mark = figure.querySelector(".still svg ." + kind);
    return mark ? getComputedStyle(mark).color : getComputedStyle(figure).color;
  }

  // powers are the ticks of a logarithmic axis: powers of ten, or where there is not one in sight, its ends.
  function powers(u, i, lo, hi) {
    var all = [];
    for (var e = Math.ceil(Math.log10(lo) - 1e-9); e <= Math.floor(Math.log10(hi) + 1e-9); e++) all.push(Math.pow(10, e));
    return all.length ? all : [lo, hi];
  }

  // lonely are the values without a neighbour, which no line goes through.
  function lonely(u, i) {
    var y = u.data[i], all = [];
    for (var k = 0; k < y.length; k++) {
      if (y[k] !== null && (k === 0 || y[k - 1] === null) && (k === y.length - 1 || y[k + 1] === null)) all.push(k);
    }
    return all;
  }

  function quiet(figure) { return getComputedStyle(figure.querySelector("figcaption") || figure).color; }

  function faint(c, opacity) { return c.replace(/^rgb\(([^)]*)\)$/, "rgba($1, " + opacity + ")"); }

  // bands shades the steps that offered load, by turns; marks draws a line at each instant that is worth one.
  function bands(timeline, figure) {
    return function (u) {
      (timeline.steps || []).filter(function (s) { return s.rate > 0; }).forEach(function (s, i) {
        var from = u.valToPos(s.from, "x", true), to = u.valToPos(s.to, "x", true);
        var left = Math.max(from, u.bbox.left), right = Math.min(to, u.bbox.left + u.bbox.width);
        if (right <= left) return;
        u.ctx.fillStyle = faint(quiet(figure), i % 2 ? 0.08 : 0.16);
        u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
      });
    };
  }

  function marks(timeline, figure, named) {
    return function (u) {
      var ctx = u.ctx, ratio = devicePixelRatio || 1, row = 0;
      ctx.save();
      ctx.beginPath();
      ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      ctx.clip();
      ctx.font = 12 * ratio + "px system-ui, sans-serif";
      ctx.lineWidth = 1.5 * ratio;
      (timeline.marks || []).forEach(function (m) {
        var x = u.valToPos(m.at, "x", true);
        ctx.strokeStyle = ctx.fillStyle = color(figure, "c7");
        ctx.setLineDash([5 * ratio, 4 * ratio]);
        ctx.beginPath();
        ctx.moveTo(x, u.bbox.top);
        ctx.lineTo(x, u.bbox.top + u.bbox.height);
        ctx.stroke();
        var width = ctx.measureText(m.text).width;
        if (!named || width + 10 * ratio > u.bbox.width) return; // the caption names it
        ctx.textAlign = "left";
        var right = x + 5 * ratio + width > u.bbox.left + u.bbox.width;
        var left = Math.max(u.bbox.left + 2 * ratio, right ? x - 5 * ratio - width : x + 5 * ratio), base = u.bbox.top + (14 + 16 * row++) * ratio;
        ctx.globalAlpha = 0.8;
        ctx.fillStyle = getComputedStyle(document.body).backgroundColor;
        ctx.fillRect(left - 2 * ratio, base - 12 * ratio, width + 4 * ratio, 16 * ratio);
        ctx.globalAlpha = 1;
        ctx.fillStyle = color(figure, "c7");
        ctx.fillText(m.text, left, base);
      });
      ctx.restore();
    };
  }

  function options(figure, timeline, plot, width, range) {
    var axis = { stroke: function () { return quiet(figure); }, grid: { stroke: function () { return faint(quiet(figure), 0.25); }, width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    var value = plot.times ? seconds : number;
    return {
      title: plot.title, width: width, height: plot.height, ms: 1e-3,
      cursor: { sync: { key: "timeline-" + figure.dataset.timeline }, drag: { x: true, y: false }, focus: { prox: 24 } },
      scales: { x: { time: false, range: range }, y: plot.times ? { distr: 3, log: 10 } : { range: function (u, lo, hi) { return [0, hi > 0 ? hi * 1.05 : 1]; } } },
      axes: [
        Object.assign({ size: 32, values: function (u, all) { return all.map(seconds); } }, axis),
        Object.assign({ size: 62, splits: plot.times ? powers : undefined, values: function (u, all) { return all.map(function (v) { return v === null || v === undefined ? "" : value(v); }); } }, axis),
      ],
      series: [{ label: "time", value: function (u, v) { return seconds(v); } }].concat(plot.series.map(function (s) {
        return {
          label: s.label, width: 1.5, points: plot.times ? { show: true, size: 4, filter: lonely } : { show: false }, paths: plot.times ? undefined : uPlot.paths.stepped({ align: 1 }),
          stroke: function () { return color(figure, s.kind); }, value: function (u, v) { return value(v); },
        };
      })),
      hooks: { drawClear: [bands(timeline, figure)], draw: [marks(timeline, figure, plot.named)] },
    };
  }

  function enliven(figure, timeline) {
    var start = timeline.offered.map(function (_, k) { return k * timeline.bin; });
    var end = timeline.offered.length * timeline.bin;
    var plots = [
      { title: "Calls per second", height: 260, named: true, series: [{ label: "offered/s", kind: "neutral", y: timeline.offered }, { label: "ended well/s", kind: "c1", y: timeline.good }, { label: "ended badly/s", kind: "bad", y: timeline.bad }] },
      { title: "Outstanding calls", height: 150, series: [{ label: "outstanding calls", kind: "c6", y: timeline.outstanding }] },
      { title: "Response time", height: 190, times: true, series: [{ label: "p50", kind: "c3", y: timeline.p50 }, { label: "p99", kind: "c2", y: timeline.p99 }] },
    ].filter(function (p) { return p.series.every(function (s) { return s.y && s.y.length === start.length; }) && (!p.times || p.series.some(function (s) { return s.y.some(function (v) { return v > 0; }); })); });
    if (start.length < 2 || plots.length === 0) return;

    var still = figure.querySelector(".still"), live = document.createElement("div"), drawn = 0, charts = [];
    live.className = "live pending";
    figure.insertBefore(live, still);
    var hint = document.createElement("p"), reset = document.createElement("button");
    hint.className = "hint";
    reset.type = "button";
    reset.textContent = "Show all";
    reset.addEventListener("click", function () { charts.forEach(function (u) { u.setScale("x", { min: 0, max: end }); }); });
    hint.append("Time since the load began. Drag across a chart to zoom in, double-click to see all again.", reset);
    live.append(hint);

    function room() { return Math.max(200, Math.floor(figure.clientWidth)); }

    function finished() {
      if (++drawn !== plots.length) return;
      live.classList.remove("pending");
      charts.forEach(function (u, i) { // what a screen reader would read of the drawing
        u.ctx.canvas.setAttribute("role", "img");
        u.ctx.canvas.setAttribute("aria-label", plots[i].title + ". " + still.querySelector("desc").textContent);
      });
      still.hidden = true;
    }

    try {
      plots.forEach(function (plot) {
        var o = options(figure, timeline, plot, room(), function (u, lo, hi) { return lo === start[0] && hi === start[start.length - 1] ? [0, end] : [lo, hi]; });
        var once = false;
        o.hooks.draw.push(function () { if (!once) { once = true; finished(); } });
        charts.push(new uPlot(o, [start].concat(plot.series.map(function (s) { return s.y; })), live));
      });
    } catch (e) {
      charts.forEach(function (u) { u.destroy(); });
      live.remove();
      still.hidden = false;
      return;
    }
    new ResizeObserver(function () {
      charts.forEach(function (u, i) { if (u.width !== room()) u.setSize({ width: room(), height: plots[i].height }); });
    }).observe(figure);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
      charts.forEach(function (u) { u.redraw(false, true); });
    });
  }

  try {
    var report = JSON.parse(document.getElementById("report").textContent);
    document.querySelectorAll("figure[data-timeline]").forEach(function (figure) {
      try {
        var timeline = (report.timeline || [])[Number(figure.dataset.timeline)];
        if (timeline) enliven(figure, timeline);
      } catch (e) { /* the drawing stays */ }
    });
  } catch (e) { /* the drawings stay */ }
})();
