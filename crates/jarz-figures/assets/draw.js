// What uPlot does not draw itself: curves in drawing order, bands, reference lines, markers.

jarz.curves = (() => {
  const NOISE_COLUMN = 3;

  const theme = () => {
    const style = getComputedStyle(document.documentElement);
    const of = name => style.getPropertyValue(`--${name}`).trim();
    return { ink: of('ink'), soft: of('soft'), grid: of('grid'), card: of('card') };
  };
  const font = size => `${size}px system-ui, "Segoe UI", Helvetica, Arial, sans-serif`;
  // Black follows the theme.
  const colour = (series, theme) => series.colour === '#000000' ? theme.ink : series.colour;

  const trail = (path, points) => points.forEach(([x, y], i) => i ? path.lineTo(x, y) : path.moveTo(x, y));

  // Where a line swings up and down within a few pixels, it becomes its local mean and the area it sweeps: dashes along
  // the swings could not be told from a solid line.
  const trace = (run, ratio) => {
    const line = [], areas = [], column = p => Math.floor(p[0] / (NOISE_COLUMN * ratio));
    let area = null;
    for (let i = 0, end; i < run.length; i = end) {
      let top = Infinity, bottom = -Infinity, travelled = 0, sum = 0;
      for (end = i; end < run.length && column(run[end]) === column(run[i]); end++) {
        const y = run[end][1];
        if (end > i) travelled += Math.abs(y - run[end - 1][1]);
        top = Math.min(top, y);
        bottom = Math.max(bottom, y);
        sum += y;
      }
      const extent = bottom - top, left = run[i][0], right = run[end - 1][0];
      if (end - i < 6 || extent < 0.1 * ratio || travelled < 2.5 * extent) {
        for (let k = i; k < end; k++) line.push(run[k]);
        area = null;
        continue;
      }
      line.push([(left + right) / 2, sum / (end - i)]);
      if (extent < 1.2 * ratio) {
        area = null;
        continue;
      }
      if (!area) areas.push(area = [[left, top, bottom]]);
      area.push([right, top, bottom]);
    }
    return { line, areas };
  };

  // Outlines of the markers around the origin, as in the picture.
  const markers = {
    circle: 'M3.2 0A3.2 3.2 0 1 1 -3.2 0A3.2 3.2 0 1 1 3.2 0Z',
    square: 'M-2.9 -2.9H2.9V2.9H-2.9Z',
    triangle: 'M-3.5 2.7L0 -3.7L3.5 2.7Z',
    diamond: 'M0 -4.2L4.2 0L0 4.2L-4.2 0Z',
    cross: 'M-3.2 -3.2L3.2 3.2M-3.2 3.2L3.2 -3.2',
  };

  return { theme, font, colour, trail, trace, markers };
})();

jarz.draw = (() => {
  const { trail, trace, markers: shapes, colour, font } = jarz.curves;
  const MARKER_GAP = 16;

  // Pixels of the parts of a curve between its gaps.
  const runs = (panel, u, xs, ys) => {
    const out = [];
    let run = null;
    xs.forEach((x, i) => {
      if (!panel.drawable(x, ys[i])) {
        run = null;
        return;
      }
      if (!run) out.push(run = []);
      run.push([u.valToPos(x, 'x', true), u.valToPos(ys[i], 'y', true)]);
    });
    return out;
  };

  const closed = (path, points) => {
    trail(path, points);
    path.closePath();
  };

  const stamp = (path, shape, [x, y], scale) =>
    path.addPath(new Path2D(shapes[shape]), new DOMMatrix([scale, 0, 0, scale, x, y]));

  const inside = (u, draw) => {
    const { left, top, width, height } = u.bbox;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    draw(u.ctx);
    u.ctx.restore();
  };

  // For uPlot: the line of a series, and the areas it sweeps.
  const paths = (panel, u, s) => {
    if (!s.width) return null;
    const stroke = new Path2D(), fill = new Path2D(), ratio = devicePixelRatio;
    for (const run of runs(panel, u, panel.grids[s.grid], s.y)) {
      if (run.length === 1) {
        if (!s.marker) stamp(stroke, 'circle', run[0], 0.3 * ratio);
        continue;
      }
      const { line, areas } = trace(run, ratio);
      trail(stroke, line);
      for (const area of areas) {
        closed(fill, area.map(([x, top]) => [x, top]).concat(area.map(([x, , bottom]) => [x, bottom]).reverse()));
      }
    }
    return { stroke, fill, flags: 0 };
  };

  const bands = (panel, u, ctx) => {
    for (const s of panel.data.series) {
      if (!s.band || !panel.shown(s)) continue;
      const { low, high } = s.band, xs = panel.grids[s.band.grid];
      // What lies below a logarithmic axis goes far below its low end.
      const least = panel.scales.y.kind === 'log' ? 1e-300 : -Infinity;
      const edge = ys => runs(panel, u, xs, ys.map((y, i) => low[i] == null || high[i] == null ? null : Math.max(y, least)));
      const path = new Path2D(), upper = edge(high);
      edge(low).forEach((lower, i) => closed(path, lower.concat(upper[i].slice().reverse())));
      ctx.fillStyle = `${colour(s, panel.theme)}2e`;
      ctx.fill(path);
    }
  };

  const references = (panel, u, ctx) => {
    const { left, top, width, height } = u.bbox, path = new Path2D();
    for (const r of panel.data.references) {
      if (r.value == null) continue;
      const at = Math.round(u.valToPos(r.value, r.horizontal ? 'y' : 'x', true)) + 0.5 * (devicePixelRatio % 2);
      trail(path, r.horizontal ? [[left, at], [left + width, at]] : [[at, top], [at, top + height]]);
    }
    ctx.strokeStyle = panel.theme.soft;
    ctx.lineWidth = devicePixelRatio;
    ctx.stroke(path);
  };

  const below = (panel, u) => inside(u, ctx => {
    bands(panel, u, ctx);
    references(panel, u, ctx);
  });

  const markers = (panel, u, s) => {
    if (!s?.marker || !panel.shown(s)) return;
    const ratio = devicePixelRatio, gap = (s.width ? MARKER_GAP : 0.125) * ratio, path = new Path2D();
    let last = null;
    for (const p of runs(panel, u, panel.grids[s.grid], s.y).flat()) {
      if (last && Math.hypot(p[0] - last[0], p[1] - last[1]) < gap) continue;
      stamp(path, s.marker, p, ratio);
      last = p;
    }
    inside(u, ctx => {
      ctx.fillStyle = ctx.strokeStyle = colour(s, panel.theme);
      ctx.lineWidth = 1.5 * ratio;
      s.marker === 'cross' ? ctx.stroke(path) : ctx.fill(path);
    });
  };

  // Names of reference lines, where they hide the least of the curves and nothing of each other.
  const names = (panel, u) => inside(u, ctx => {
    const { left, top, width, height } = u.bbox, ratio = devicePixelRatio, taken = [];
    Object.assign(ctx, { font: font(11 * ratio), textBaseline: 'top', textAlign: 'left', lineJoin: 'round', lineWidth: 3 * ratio });
    Object.assign(ctx, { strokeStyle: panel.theme.card, fillStyle: panel.theme.soft });
    const named = panel.data.references.filter(r => r.value != null && r.label);
    const shown = named.length ? panel.data.series.filter(s => panel.shown(s)) : [];
    const points = shown.flatMap(s => runs(panel, u, panel.grids[s.grid], s.y).flat());
    for (const { value, label, horizontal } of named) {
      const at = u.valToPos(value, horizontal ? 'y' : 'x', true);
      const w = ctx.measureText(label).width + 6 * ratio, h = 14 * ratio;
      const places = [0, 0.2, 0.4, 0.6, 0.8, 1].flatMap(t => horizontal
        ? [at - h, at + 3 * ratio].map(y => [left + (width - w) * (1 - t), y])
        : [at + 4 * ratio, at - w].map(x => [x, top + (height - h) * t]));
      const fits = ([x, y]) => x >= left && y >= top && x + w <= left + width + 1 && y + h <= top + height + 1;
      const free = ([x, y]) => taken.every(([a, b, c]) => x >= a + c || a >= x + w || y >= b + h || b >= y + h);
      const hides = ([x, y]) => points.reduce((n, [a, b]) => n + (a >= x && a <= x + w && b >= y && b <= y + h), 0);
      const visible = horizontal ? at >= top && at <= top + height : at >= left && at <= left + width;
      const open = visible ? places.filter(p => fits(p) && free(p)).map(p => [hides(p), p]) : [];
      if (!open.length) continue;
      const [, [x, y]] = open.reduce((best, next) => next[0] < best[0] ? next : best);
      taken.push([x, y, w]);
      ctx.strokeText(label, x + 3 * ratio, y);
      ctx.fillText(label, x + 3 * ratio, y);
    }
  });

  const nothing = (panel, u) => {
    const { left, top, width, height } = u.bbox, { ctx } = u;
    const empty = s => !s.band?.low.length && !s.y.some((y, i) => panel.drawable(panel.grids[s.grid][i], y));
    if (!panel.data.series.every(empty)) return;
    ctx.save();
    Object.assign(ctx, { font: font(12 * devicePixelRatio), textBaseline: 'middle', textAlign: 'center', fillStyle: panel.theme.soft });
    ctx.fillText('no data', left + width / 2, top + height / 2);
    ctx.restore();
  };

  return { paths, below, markers, names, nothing };
})();
