// Figures of a page: panels side by side, a legend that switches series on and off, a box with the values under the pointer.

// Shows the values nearest to the pointer, in the panel that the pointer is in.
jarz.tip = (panel, u) => {
  const { tip, data, grids } = panel, { left, top, idxs, event } = u.cursor;
  const rows = data.series.flatMap((s, i) => {
    const at = idxs?.[i + 1];
    return at == null || !panel.shown(s) ? [] : [[s, u.data[0][at], u.data[i + 1][at]]];
  });
  tip.hidden = left < 0 || event == null || !rows.length;
  if (tip.hidden) return;
  const nearest = rows.reduce((a, b) => Math.abs(u.valToPos(b[1], 'x') - left) < Math.abs(u.valToPos(a[1], 'x') - left) ? b : a);
  const element = (tag, name, text) => {
    const e = document.createElement(tag);
    e.className = name;
    e.textContent = text;
    return e;
  };
  const head = element('div', 'tip-head', `${data.x.label || 'x'} ${jarz.ticks.number(nearest[1])}`);
  const lines = rows.map(([s, x, y]) => {
    const row = element('div', 'tip-row', '');
    const swatch = element('span', 'tip-swatch', '');
    swatch.style.background = jarz.curves.colour(s, panel.theme);
    let value = jarz.ticks.number(y);
    const k = s.band ? grids[s.band.grid].indexOf(x) : -1;
    if (k >= 0 && s.band.low[k] != null) {
      value += ` [${jarz.ticks.number(s.band.low[k])}, ${jarz.ticks.number(s.band.high[k])}]`;
    }
    row.append(swatch, element('span', 'tip-name', s.label || data.y.label || data.title), element('span', 'tip-value', value));
    return row;
  });
  tip.replaceChildren(head, ...lines);
  const room = u.over.clientWidth, width = tip.offsetWidth, gap = 14;
  const x = left + gap + width <= room ? left + gap : left - gap - width;
  tip.style.left = `${Math.max(x, Math.min(0, room - width))}px`;
  tip.style.top = `${Math.max(Math.min(top - tip.offsetHeight / 2, u.over.clientHeight - tip.offsetHeight), 0)}px`;
};

jarz.Figure = class {
  constructor(element, key) {
    Object.assign(this, { element, key, panels: [], buttons: [] });
    this.frame = document.createElement('div');
    this.frame.className = 'frame';
    this.build();
    this.watch = new ResizeObserver(() => requestAnimationFrame(() => this.panels.forEach(p => p.resize())));
    this.watch.observe(this.frame);
  }

  parse() {
    return JSON.parse(this.element.querySelector('script').textContent);
  }

  // The picture stays in the page, for print.
  build() {
    const before = this.panels;
    this.data = this.parse();
    before.forEach(p => p.plot.destroy());
    const heading = document.createElement('div');
    heading.className = 'figure-title';
    heading.textContent = this.data.title;
    heading.hidden = !this.data.title;
    this.grid = document.createElement('div');
    this.grid.className = 'panels';
    this.grid.style.setProperty('--columns', this.data.columns);
    this.grid.style.setProperty('--panel', `${Math.min(this.data.size[0], 300)}px`);
    this.again = document.createElement('button');
    this.again.type = 'button';
    this.again.className = 'reset';
    this.again.textContent = 'reset zoom';
    this.again.addEventListener('click', () => this.reset());
    this.frame.replaceChildren(heading, this.again, this.grid);
    if (!this.frame.isConnected) this.element.querySelector('img').after(this.frame);
    this.element.classList.add('live');
    this.panels = this.data.panels.map(data => {
      const box = document.createElement('div');
      this.grid.append(box);
      const panel = new jarz.Panel(this, box, data, this.data.grids);
      // What the reader chose stays, also when a name in the legend has changed.
      const { zoom, hidden } = before.find(p => p.data.title === data.title) ?? panel;
      return Object.assign(panel, { zoom, hidden });
    });
    this.legends();
    this.refresh();
  }

  // One legend below all panels, or one below each, as in the picture.
  legends() {
    const entries = panels => {
      const list = [];
      for (const s of panels.flatMap(p => p.data.series)) {
        const known = list.find(e => e.label === s.label);
        if (known) known.band ||= s.band;
        else if (s.label) list.push({ ...s });
      }
      return list;
    };
    this.buttons = [];
    const add = (place, panels) => {
      const legend = document.createElement('div');
      legend.className = 'legend';
      legend.append(...entries(panels).map(s => this.button(s, panels)));
      if (legend.childElementCount) place.append(legend);
    };
    if (this.data.shared_legend) add(this.frame, this.panels);
    else this.panels.forEach(p => add(p.box, [p]));
  }

  button(series, panels) {
    const button = document.createElement('button');
    button.type = 'button';
    button.title = 'show or hide';
    const svg = (tag, attributes) => {
      const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
      Object.entries(attributes).forEach(([k, v]) => e.setAttribute(k, v));
      return e;
    };
    const colour = series.colour === '#000000' ? 'currentColor' : series.colour;
    const sample = svg('svg', { width: 30, height: 12, 'aria-hidden': true });
    if (series.band) sample.append(svg('rect', { y: 1, width: 30, height: 10, fill: colour, opacity: 0.18 }));
    if (series.width) {
      sample.append(svg('line', { y1: 6, x2: 30, y2: 6, stroke: colour, 'stroke-width': series.width, 'stroke-dasharray': series.dash.join(' ') }));
    }
    if (series.marker) sample.append(svg('path', { d: jarz.curves.markers[series.marker], fill: colour, stroke: colour, transform: 'translate(15 6)' }));
    button.append(sample, document.createTextNode(series.label));
    button.addEventListener('click', () => {
      const on = panels.some(p => p.hidden.has(series.label));
      panels.forEach(p => on ? p.hidden.delete(series.label) : p.hidden.add(series.label));
      this.refresh();
    });
    this.buttons.push(() => button.setAttribute('aria-pressed', !panels.some(p => p.hidden.has(series.label))));
    return button;
  }

  // Panels over the same quantity are zoomed together.
  zoomX(source, range) {
    const same = p => p.data.x.label === source.data.x.label && p.data.x.scale === source.data.x.scale;
    this.panels.filter(same).forEach(p => { p.zoom.x = range; });
  }

  reset() {
    this.panels.forEach(p => { p.zoom = { x: null, y: null }; });
    this.refresh();
  }

  refresh() {
    this.panels.forEach(p => p.refresh());
    this.buttons.forEach(show => show());
    this.again.style.visibility = this.panels.some(p => p.zoom.x || p.zoom.y) ? 'visible' : 'hidden';
  }

  // New data from the server; the reader's zoom and choice of series stay while the figure has the same panels.
  update(script) {
    this.element.querySelector('script').textContent = script;
    const data = this.parse();
    const same = data.panels.length === this.panels.length && data.shared_legend === this.data.shared_legend
      && this.panels.every((p, i) => p.fits(data.panels[i]));
    if (!same) return this.build();
    this.data = data;
    this.panels.forEach((p, i) => p.update(data.panels[i], data.grids));
    this.refresh();
  }

  repaint() {
    this.panels.forEach(p => p.repaint());
  }

  remove() {
    this.watch.disconnect();
    this.panels.forEach(p => p.plot.destroy());
  }
};

// A figure that cannot be built stays a picture.
jarz.mount = root => {
  for (const element of root.querySelectorAll('figure.plot:not(.live)')) {
    try {
      jarz.figures.set(element, new jarz.Figure(element, `figure-${jarz.figures.size}-${Date.now()}`));
    } catch (error) {
      element.classList.remove('live');
      element.querySelector('.frame')?.remove();
      console.error(error);
    }
  }
};

jarz.figures = new Map();
jarz.mount(document);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => jarz.figures.forEach(f => f.repaint()));
