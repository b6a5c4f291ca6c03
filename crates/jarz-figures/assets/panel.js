// One pair of axes with its curves, on a plot of uPlot.

jarz.Panel = class {
  // Sits in the element `box`. The figure hears of zooms.
  constructor(figure, box, data, grids) {
    Object.assign(this, { figure, box, hidden: new Set(), zoom: { x: null, y: null } });
    this.title = document.createElement('div');
    this.title.className = 'panel-title';
    this.tip = document.createElement('div');
    this.tip.className = 'tip';
    this.tip.hidden = true;
    this.box.className = 'panel';
    this.box.append(this.title);
    this.theme = jarz.curves.theme();
    this.take(data, grids);
    this.plot = new uPlot(this.options(), this.table(), this.box);
    this.plot.over.append(this.tip);
  }

  take(data, grids) {
    this.data = data;
    this.grids = grids;
    this.title.textContent = data.title;
    this.box.setAttribute('role', 'group');
    this.box.setAttribute('aria-label', data.title || data.y.label);
    this.scales = { x: jarz.scales.of(data.x), y: jarz.scales.of(data.y) };
  }

  drawable(x, y) {
    return x != null && y != null && this.scales.x.drawable(x) && this.scales.y.drawable(y);
  }

  // Whether other data can take the place of these: same axes, same curves.
  fits(data) {
    const axis = a => [a.label, a.scale, a.linthresh];
    const shape = d => JSON.stringify([axis(d.x), axis(d.y),
      d.series.map(s => [s.label, s.colour, s.dash, s.width, s.marker])]);
    return shape(data) === shape(this.data);
  }

  // The curves on their common x; a value that is missing there only because another curve has it is undefined.
  table() {
    const tables = this.data.series.map(s => {
      const points = this.grids[s.grid].map((x, i) => [x, s.y[i]]).filter(p => p[0] != null);
      points.sort((a, b) => a[0] - b[0]);
      return [points.map(p => p[0]), points.map(p => this.drawable(...p) ? p[1] : null)];
    });
    return tables.length ? uPlot.join(tables, tables.map(() => [0, 2])) : [[]];
  }

  shown(series) {
    return !series.label || !this.hidden.has(series.label);
  }

  // Everything between two values of x.
  *between([low, high]) {
    const inside = x => x != null && x >= low && x <= high;
    for (const s of this.data.series.filter(s => this.shown(s))) {
      const xs = this.grids[s.grid], bandXs = s.band ? this.grids[s.band.grid] : [];
      for (let i = 0; i < xs.length; i++) if (inside(xs[i])) yield s.y[i];
      for (let i = 0; i < bandXs.length; i++) if (inside(bandXs[i])) yield* [s.band.low[i], s.band.high[i]];
    }
  }

  // What an axis shows: the zoom, or all there is; the vertical range follows the horizontal zoom.
  range(name) {
    const { low, high, fixed } = this.data[name];
    if (this.zoom[name]) return this.zoom[name];
    if (name === 'x' || !this.zoom.x || fixed) return [low, high];
    return jarz.scales.around(this.scales.y, this.between(this.zoom.x), 0.05) ?? [low, high];
  }

  options() {
    const colour = s => jarz.curves.colour(s, this.theme);
    const series = this.data.series.map(s => ({
      label: s.label,
      show: this.shown(s),
      stroke: () => colour(s),
      fill: () => `${colour(s)}4d`,
      width: s.width,
      dash: s.dash.length ? s.dash : undefined,
      paths: (u, i) => jarz.draw.paths(this, u, this.data.series[i - 1]),
      points: { show: false },
    }));
    const scale = name => ({
      time: false,
      distr: this.scales[name].kind === 'linear' ? 1 : 100,
      fwd: v => this.scales[name].forward(v),
      bwd: v => this.scales[name].backward(v),
      range: () => this.range(name),
    });
    return {
      ...this.size(),
      padding: [8, 20, 0, 0],
      legend: { show: false },
      scales: { x: scale('x'), y: scale('y') },
      series: [{}, ...series],
      axes: [this.axis('x'), this.axis('y')],
      cursor: {
        y: false,
        sync: { key: this.figure.key, setSeries: false, filters: { pub: type => !['mousedown', 'mouseup', 'dblclick'].includes(type) } },
        drag: { x: true, y: true, uni: 24, dist: 6, setScale: false },
        hover: { prox: 40, skip: [undefined, null] },
        points: { size: 7, width: 1.5, stroke: () => this.theme.card, fill: (u, i) => colour(this.data.series[i - 1]) },
        bind: { dblclick: () => () => this.figure.reset() },
      },
      hooks: {
        drawAxes: [u => jarz.draw.below(this, u)],
        drawSeries: [(u, i) => jarz.draw.markers(this, u, this.data.series[i - 1])],
        draw: [u => jarz.draw.names(this, u), u => jarz.draw.nothing(this, u)],
        setSelect: [u => this.selected(u)],
        setCursor: [u => jarz.tip(this, u)],
      },
    };
  }

  axis(name) {
    const labels = (u, splits) => {
      const { min, max } = u.scales[name], { list } = this.ticks(u, name, min, max);
      return splits.map(v => list.find(t => t[0] === v)?.[1] ?? '');
    };
    const size = (u, values) => {
      if (name === 'x') return 26;
      u.ctx.save();
      u.ctx.font = jarz.curves.font(11);
      const widest = Math.max(0, ...(values ?? []).map(v => u.ctx.measureText(v).width));
      u.ctx.restore();
      return Math.ceil(widest) + 12;
    };
    return {
      scale: name,
      font: jarz.curves.font(11),
      labelFont: jarz.curves.font(12),
      labelSize: 18,
      labelGap: 0,
      gap: 4,
      size,
      stroke: () => this.theme.ink,
      grid: { stroke: () => this.theme.grid, width: 1 },
      ticks: { stroke: () => this.theme.soft, width: 1, size: 4 },
      border: { show: true, stroke: () => this.theme.soft, width: 1 },
      label: u => this.axisLabel(u, name),
      // The places of the ticks are ours; uPlot must only find a step that fits (one below 5 it would look up in a table).
      space: 1,
      incrs: (u, axis, low, high) => [Math.max(high - low, 5)],
      splits: (u, axis, low, high) => this.ticks(u, name, low, high).list.map(t => t[0]),
      filter: (u, splits) => splits,
      values: labels,
    };
  }

  ticks(u, name, low, high) {
    const [length, each] = name === 'x' ? [u.bbox.width, 52] : [u.bbox.height, 32];
    const most = Math.min(Math.max(Math.floor(length / devicePixelRatio / each), 2), 8);
    return jarz.ticks.of(this.scales[name], low, high, most);
  }

  // With the power of ten that the labels of the ticks leave out.
  axisLabel(u, name) {
    const { min, max } = u.scales[name], { power } = this.ticks(u, name, min, max);
    const { label } = this.data[name], factor = `×10${jarz.ticks.raised(power)}`;
    return !power ? label : label ? `${label} (${factor})` : factor;
  }

  size() {
    const [w, h] = this.figure.data.size, width = Math.max(this.box.clientWidth, 160);
    return { width, height: Math.round(Math.min(Math.max(width * h / w, 210), 330)) };
  }

  // A dragged rectangle becomes the zoom of the directions it does not span.
  selected(u) {
    const { left, top, width, height } = u.select;
    if (!width || !height) return;
    const wide = width < u.over.clientWidth, tall = height < u.over.clientHeight;
    if (wide) this.figure.zoomX(this, [u.posToVal(left, 'x'), u.posToVal(left + width, 'x')]);
    if (tall) this.zoom.y = [u.posToVal(top + height, 'y'), u.posToVal(top, 'y')];
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.figure.refresh();
  }

  refresh() {
    this.plot.batch(() => {
      this.data.series.forEach((s, i) => {
        if (this.plot.series[i + 1].show !== this.shown(s)) this.plot.setSeries(i + 1, { show: this.shown(s) });
      });
      for (const name of ['x', 'y']) {
        const [min, max] = this.range(name);
        this.plot.setScale(name, { min, max });
      }
    });
  }

  resize() {
    const size = this.size();
    if (size.width !== this.plot.width || size.height !== this.plot.height) this.plot.setSize(size);
  }

  repaint() {
    this.theme = jarz.curves.theme();
    this.plot.redraw(true, true);
  }

  update(data, grids) {
    this.take(data, grids);
    this.plot.setData(this.table(), false);
  }
};
