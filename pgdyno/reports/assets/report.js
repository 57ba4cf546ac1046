/*
 * Draws the charts of a report from the data in the page, with uPlot (the global `uPlot`).
 *
 * A `Strip` is a set of panels over one horizontal axis: the reading line and the zoom of one are those
 * of all. Pointer: move to read, drag to zoom, double-click for everything. Keys on a focused panel:
 * left and right move the reading line (with shift by ten), + and - zoom, 0 or Escape shows everything.
 * The page stays complete without this script, but for the charts.
 */
(() => {
  "use strict";

  const root = document.documentElement;
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

  /** Base64 of Float32 or Float64 as numbers, null where there is no value. */
  function decode(text, Kind) {
    const raw = atob(text);
    const bytes = Uint8Array.from(raw, (character) => character.charCodeAt(0));
    return Array.from(new Kind(bytes.buffer), (value) => (Number.isNaN(value) ? null : value));
  }

  /** Four digits at most, groups of three apart. */
  function number(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size >= 1000) return Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
    if (size >= 100) return value.toFixed(0);
    if (size >= 10) return value.toFixed(1);
    if (size >= 1 || size === 0) return value.toFixed(size === 0 ? 0 : 2);
    return value.toPrecision(2);
  }

  /** A mark of an axis: no digits that say nothing. */
  function mark(value) {
    const [whole, decimals] = Math.abs(Number(value.toPrecision(6))).toString().split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
    return `${value < 0 ? "−" : ""}${grouped}${decimals ? `.${decimals}` : ""}`;
  }

  /** Marks of a logarithmic axis: 1, 2 and 5 times powers of ten, or powers alone when it is long. */
  function decades(low, high) {
    const factors = Math.log10(high / low) > 2.5 ? [1] : [1, 2, 5];
    const marks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const factor of factors) marks.push(Number(`${factor}e${power}`));
    }
    return marks.filter((at) => at >= low * 0.999 && at <= high * 1.001);
  }

  function faded(hex, alpha) {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${r},${g},${b},${alpha})`;
  }

  function element(tag, name, text) {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /** How each horizontal axis is scaled, marked and read out. */
  const AXES = {
    time: {
      scale: {},
      ticks: {},
      mark: (value) => `${mark(value)} s`,
      read: (value, strip) => {
        const zero = strip.data.zero_unix_ms;
        const seconds = `${value < 0 ? "−" : ""}${Math.abs(value).toFixed(1)} s`;
        if (zero === null) return seconds;
        return `${seconds} · ${new Date(zero + value * 1000).toISOString().slice(11, 19)} UTC`;
      },
    },
    percentile: {
      scale: { distr: 3 },
      ticks: {
        splits: (plot) => {
          const all = [2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
          return all.filter((at) => at >= plot.scales.x.min && at <= plot.scales.x.max);
        },
        filter: (_plot, splits) => splits,
      },
      mark: (value) => percentile(value),
      read: (value) => `${percentile(value)} of transactions`,
    },
    milliseconds: {
      scale: { distr: 3 },
      ticks: {
        splits: (plot) => decades(plot.scales.x.min, plot.scales.x.max),
        filter: (_plot, splits) => splits,
      },
      mark: (value) => `${mark(value)} ms`,
      read: (value) => `${number(value)} ms`,
    },
  };

  /** 1 / (1 − share) as a percentage with the digits it needs: 2 → 50 %, 1000 → 99.9 %. */
  function percentile(inverse) {
    const share = 100 * (1 - 1 / inverse);
    const nines = Math.max(0, Math.ceil(Math.log10(inverse) - 2 - 1e-9));
    return `${share.toFixed(inverse <= 100 ? (share % 1 > 1e-9 && inverse > 10 ? 1 : 0) : nines)} %`;
  }

  class Strip {
    constructor(node, data) {
      this.node = node;
      this.data = data;
      this.axis = AXES[data.axis];
      this.full = [data.from, data.to];
      this.range = this.full.slice();
      this.moving = false;
      this.panels = data.panels.map((panel, index) => new Track(this, panel, index));
      this.now = node.querySelector(".now");
      this.reset = node.querySelector(".reset");
      this.spoken = node.querySelector(".spoken");
      this.reset.addEventListener("click", () => this.zoom(...this.full));
      this.draw();
      let width = node.clientWidth;
      new ResizeObserver(() => {
        if (node.clientWidth === width || document.body.classList.contains("printing")) return;
        width = node.clientWidth;
        this.draw();
      }).observe(node);
    }

    draw(width) {
      for (const track of this.panels) track.draw(width ?? this.node.clientWidth);
    }

    /** Show from..to on all panels, never more than there is. */
    zoom(from, to) {
      this.range = [Math.max(from, this.full[0]), Math.min(to, this.full[1])];
      for (const { plot } of this.panels) plot.setScale("x", { min: this.range[0], max: this.range[1] });
      this.reset.hidden = this.range[0] === this.full[0] && this.range[1] === this.full[1];
    }

    /** Put the reading line of every panel at `value`, or take it away (null). */
    point(value, source) {
      if (this.moving) return;
      this.moving = true;
      for (const track of this.panels) {
        if (track !== source) {
          const left = value === null ? -10 : track.plot.valToPos(value, "x");
          track.plot.setCursor({ left, top: value === null ? -10 : 10 });
        }
        track.read(value);
      }
      this.now.textContent = value === null ? "" : this.axis.read(value, this);
      this.moving = false;
    }

    press(event, track) {
      const at = track.plot.cursor.idx;
      const xs = track.plot.data[0];
      const inside = xs.findIndex((value) => value >= this.range[0]);
      const step = event.shiftKey ? 10 : 1;
      const [from, to] = this.range;
      const middle = track.pointed ?? (from + to) / 2;
      const move = (index) => {
        const bounded = Math.min(Math.max(index, 0), xs.length - 1);
        this.point(xs[bounded], null);
        this.speak(track, bounded);
      };
      const scaled = (factor) => {
        if (this.data.axis === "time") return this.zoom(middle - (middle - from) * factor, middle + (to - middle) * factor);
        return this.zoom(middle * (from / middle) ** factor, middle * (to / middle) ** factor);
      };
      const keys = {
        ArrowRight: () => move(track.pointed === null ? inside : at + step),
        ArrowLeft: () => move(track.pointed === null ? inside : at - step),
        Home: () => move(inside),
        End: () => move(xs.findLastIndex((value) => value <= this.range[1])),
        "+": () => scaled(0.5),
        "=": () => scaled(0.5),
        "-": () => scaled(2),
        0: () => this.zoom(...this.full),
        Escape: () => { this.zoom(...this.full); this.point(null, null); },
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    }

    speak(track, index) {
      const values = track.lines.map((line) => `${line.label} ${number(line.values[index])}`).join(", ");
      this.spoken.textContent = `${this.axis.read(track.xs[index], this)}: ${values} ${track.data.unit}`;
    }
  }

  class Track {
    constructor(strip, data, index) {
      this.strip = strip;
      this.data = data;
      this.index = index;
      this.last = index === strip.data.panels.length - 1;
      this.pointed = null;
      this.xs = decode(data.x, Float64Array);
      this.lines = data.lines.map((line) => ({ ...line, shown: true, values: decode(line.values, Float32Array) }));
      this.node = strip.node.querySelector(`[data-panel="${index}"]`);
      this.node.addEventListener("keydown", (event) => this.strip.press(event, this));
      this.legend();
    }

    legend() {
      const list = this.node.querySelector(".readings");
      this.outputs = this.lines.map((line) => {
        const item = element("li");
        const button = element("button");
        button.type = "button";
        button.title = `${line.about}; press to hide or show`;
        button.setAttribute("aria-pressed", "true");
        const swatch = element("span", `swatch${this.data.stacked ? " block" : ""}${line.dashed ? " dashed" : ""}`);
        swatch.style.backgroundColor = line.dashed ? "transparent" : `var(--${line.colour})`;
        swatch.style.borderColor = `var(--${line.colour})`;
        button.append(swatch, line.label);
        button.addEventListener("click", () => {
          line.shown = !line.shown;
          button.setAttribute("aria-pressed", String(line.shown));
          this.draw(this.strip.node.clientWidth);
        });
        const output = element("output", "", "");
        item.append(button, output);
        list.append(item);
        return output;
      });
    }

    /** Values as drawn, the highest of a stack first so that lower ones are painted over it. */
    drawn() {
      const shown = this.lines.filter((line) => line.shown);
      if (!this.data.stacked) return shown.map((line) => ({ line, values: line.values }));
      const sums = this.xs.map(() => 0);
      return shown
        .map((line) => ({
          line,
          values: line.values.map((value, at) => (value === null ? null : (sums[at] += value))),
        }))
        .reverse();
    }

    draw(width) {
      this.plot?.destroy();
      const drawn = this.drawn();
      this.plot = new uPlot(this.options(drawn, width), [this.xs, ...drawn.map((one) => one.values)], this.node.querySelector(".plot"));
      const over = this.plot.over;
      const touched = (event) => {
        if (event.pointerType !== "touch") return;
        const left = event.clientX - over.getBoundingClientRect().left;
        this.strip.point(this.plot.posToVal(left, "x"), null);
      };
      over.addEventListener("pointerdown", touched);
      over.addEventListener("pointermove", touched);
    }

    options(drawn, width) {
      const { strip, data } = this;
      const narrow = width < 560;
      return {
        width,
        height: (strip.data.panels.length === 1 ? 220 : narrow ? 122 : 132) + (this.last ? 28 : 8),
        padding: [8, narrow ? 12 : 18, 0, 0],
        legend: { show: false },
        cursor: {
          y: false,
          points: data.stacked ? { show: false } : { size: 7, width: 2 },
          drag: { x: true, y: false, setScale: false },
          bind: { dblclick: () => () => strip.zoom(...strip.full) },
        },
        scales: {
          x: { time: false, ...strip.axis.scale, range: () => strip.range },
          y: this.scale(),
        },
        axes: this.axes(narrow),
        series: [{}, ...drawn.map(({ line }) => this.series(line))],
        hooks: {
          drawClear: [(plot) => this.shade(plot)],
          draw: [(plot) => this.name(plot)],
          setCursor: [(plot) => strip.moving || strip.point(plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : null, this)],
          setSelect: [(plot) => this.select(plot)],
        },
      };
    }

    scale() {
      if (this.data.scale === "log") {
        return { distr: 3, range: (_plot, low, high) => [(low ?? 1) * 0.85, (high ?? 10) * 1.25] };
      }
      if (this.data.scale === "share") return { range: () => [0, 100] };
      return { range: (_plot, _low, high) => [0, (high || 1) * 1.08] };
    }

    axes(narrow) {
      const face = `12px ${getComputedStyle(document.body).fontFamily}`;
      const common = { stroke: colour("muted"), font: face, grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false } };
      const across = {
        ...common,
        ...this.strip.axis.ticks,
        size: this.last ? 28 : 8,
        space: narrow ? 60 : 80,
        values: (_plot, splits) => (this.last ? splits.map(this.strip.axis.mark) : splits.map(() => "")),
      };
      const up = {
        ...common,
        size: narrow ? 48 : 62,
        space: 26,
        gap: 6,
        values: (_plot, splits) => splits.map((at) => (at === null ? "" : mark(at))),
      };
      if (this.data.scale === "log") {
        up.splits = (plot) => decades(plot.scales.y.min, plot.scales.y.max);
        up.filter = (_plot, splits) => splits;
      }
      return [across, up];
    }

    series(line) {
      const stroke = colour(line.colour);
      const filled = this.data.stacked || line.filled;
      return {
        stroke: this.data.stacked ? undefined : stroke,
        width: this.data.stacked ? 0 : line.dashed ? 1.2 : 1.7,
        dash: line.dashed ? [4, 3] : undefined,
        fill: filled ? (this.data.stacked ? stroke : faded(stroke, 0.16)) : undefined,
        fillTo: 0,
        points: { show: this.xs.length < 3, size: 5 },
        paths: line.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
        spanGaps: false,
      };
    }

    /** What does not count (warm-up, the wait for the last ones) lies on a darker ground. */
    shade(plot) {
      const { ctx, bbox } = plot;
      for (const [from, to, label] of this.strip.data.shaded ?? []) {
        const left = Math.max(plot.valToPos(from, "x", true), bbox.left);
        const right = Math.min(plot.valToPos(to, "x", true), bbox.left + bbox.width);
        if (right <= left) continue;
        ctx.save();
        ctx.fillStyle = colour("shade");
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
        ctx.restore();
      }
    }

    /** The first panel says what the darker ground is, above the grid. */
    name(plot) {
      if (this.index !== 0) return;
      const { ctx, bbox } = plot;
      const dots = devicePixelRatio;
      ctx.save();
      ctx.font = `${11 * dots}px ${getComputedStyle(document.body).fontFamily}`;
      ctx.textBaseline = "top";
      ctx.textAlign = "left";
      for (const [from, to, label] of this.strip.data.shaded ?? []) {
        const left = Math.max(plot.valToPos(from, "x", true), bbox.left) + 4 * dots;
        const width = ctx.measureText(label).width;
        if (left + width + 4 * dots > Math.min(plot.valToPos(to, "x", true), bbox.left + bbox.width)) continue;
        ctx.fillStyle = colour("shade");
        ctx.fillRect(left - dots, bbox.top + 2 * dots, width + 2 * dots, 15 * dots);
        ctx.fillStyle = colour("muted");
        ctx.fillText(label, left, bbox.top + 4 * dots);
      }
      ctx.restore();
    }

    select(plot) {
      const { left, width } = plot.select;
      if (width < 4) return;
      const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
      plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      this.strip.zoom(from, to);
    }

    /** Show the values beside the reading line, each panel's own sample nearest to it. */
    read(value) {
      this.pointed = value;
      const at = value === null ? null : nearest(this.xs, value);
      this.lines.forEach((line, index) => {
        this.outputs[index].textContent = at === null ? "" : number(line.values[at]);
      });
    }
  }

  function nearest(sorted, value) {
    let [low, high] = [0, sorted.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (sorted[middle] <= value) low = middle;
      else high = middle;
    }
    return Math.abs(sorted[low] - value) <= Math.abs(sorted[high] - value) ? low : high;
  }

  const strips = [];
  for (const script of document.querySelectorAll("script[data-strip]")) {
    const node = document.getElementById(script.dataset.strip);
    strips.push(new Strip(node, JSON.parse(script.textContent)));
    node.dataset.drawn = "yes";
  }
  const redraw = (width) => strips.forEach((strip) => strip.draw(width));

  /* Light and dark: as the system says, until the button is used. */
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  let chosen = null;
  try { chosen = localStorage.getItem("pgdyno-theme"); } catch { /* a file's page may have no storage */ }
  function paint(theme) {
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Show in ${theme === "dark" ? "light" : "dark"} colours`);
    redraw();
  }
  const wanted = () => chosen ?? (system.matches ? "dark" : "light");
  paint(wanted());
  system.addEventListener("change", () => paint(wanted()));
  button.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("pgdyno-theme", chosen); } catch { /* then for this view only */ }
    paint(chosen);
  });

  /* Paper: light colours, charts as wide as the sheet, everything unfolded. */
  addEventListener("beforeprint", () => {
    document.body.classList.add("printing");
    root.dataset.theme = "light";
    for (const details of document.querySelectorAll("details:not([open])")) { details.open = true; details.dataset.folded = ""; }
    redraw(660);
  });
  addEventListener("afterprint", () => {
    for (const details of document.querySelectorAll("details[data-folded]")) { details.open = false; delete details.dataset.folded; }
    document.body.classList.remove("printing");
    paint(wanted());
  });
})();
