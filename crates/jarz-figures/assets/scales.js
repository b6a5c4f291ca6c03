// Scales, ticks and numbers: the same rules as for the SVG.
'use strict';

const jarz = {};

jarz.scales = (() => {
  const LARGEST = 1e300, SMALLEST = 1e-300;
  const clamp = (v, low, high) => Math.min(Math.max(v, low), high);

  const linear = () => ({
    kind: 'linear',
    drawable: v => Math.abs(v) <= LARGEST,
    forward: v => v,
    backward: p => clamp(p, -LARGEST, LARGEST),
  });

  const log = () => ({
    kind: 'log',
    drawable: v => v >= SMALLEST && v <= LARGEST,
    forward: v => Math.log10(Math.max(v, SMALLEST)),
    backward: p => clamp(10 ** p, SMALLEST, LARGEST),
  });

  // Linear up to the threshold on both sides of zero (one decade's length each), logarithmic beyond.
  const symlog = t => ({
    kind: 'symlog',
    threshold: t,
    drawable: v => Math.abs(v) <= LARGEST,
    forward: v => Math.abs(v) <= t ? v / t : Math.sign(v) * (1 + Math.log10(Math.abs(v)) - Math.log10(t)),
    backward: p => {
      const size = Math.abs(p);
      return Math.sign(p) * Math.min(size <= 1 ? size * t : 10 ** (size - 1 + Math.log10(t)), LARGEST);
    },
  });

  const of = axis =>
    axis.scale === 'log' ? log() : axis.scale === 'symlog' ? symlog(axis.linthresh) : linear();

  // A range that holds the values, with a margin at both ends.
  const around = (scale, values, margin) => {
    let low = Infinity, high = -Infinity;
    for (const v of values) {
      if (v == null || !scale.drawable(v)) continue;
      if (v < low) low = v;
      if (v > high) high = v;
    }
    if (low > high) return null;
    const a = scale.forward(low), b = scale.forward(high), span = b - a;
    if (span <= Math.max(1e-9 * Math.max(Math.abs(a), Math.abs(b)), scale.kind === 'linear' ? 1e-290 : 1e-6)) {
      const half = scale.kind !== 'linear' ? 0.5 : Math.abs(a) < 1e-280 ? 1 : 0.1 * Math.abs(a);
      return [scale.backward(a - half), scale.backward(b + half)];
    }
    return [scale.backward(a - margin * span), scale.backward(b + margin * span)];
  };

  return { of, around };
})();

jarz.ticks = (() => {
  const THIN = '\u2009', MINUS = '\u2212';
  const raised = n => String(n).replace(/./g, c => c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[c]);
  // Exact where division by a power of ten is.
  const shift = (v, k) => k >= 0 ? v * 10 ** k : k >= -300 ? v / 10 ** -k : v / 1e300 / 10 ** (-k - 300);

  // Real minus signs, and thin spaces between the thousands of numbers with five digits or more.
  const typeset = text => {
    const digits = text.replace(/^-/, ''), nothing = /^[0.]*$/.test(digits);
    const [whole, ...rest] = digits.split('.');
    const spaced = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, THIN) : whole;
    return (digits.length < text.length && !nothing ? MINUS : '') + [spaced, ...rest].join('.');
  };

  const powerLabel = (negative, m, k, written) => {
    const sign = negative ? MINUS : '';
    if (written) return sign + typeset(shift(m, k).toFixed(Math.max(-k, 0)));
    return sign + (m === 1 ? '10' : m + '×10') + raised(k);
  };
  const short = exponents => exponents.every(k => k >= -2 && k <= 3);

  // Multiples of 1, 2 or 5 times a power of ten; labels may leave out a power that all of them share.
  const linear = (low, high, most) => {
    for (let k = Math.floor(Math.log10((high - low) / most)); ; k++) {
      for (const m of [1, 2, 5]) {
        const step = shift(m, k);
        const first = Math.ceil(low / step - 1e-7), last = Math.floor(high / step + 1e-7);
        if (last - first >= most) continue;
        const largest = Math.max(Math.abs(low), Math.abs(high));
        const power = largest >= 1e-3 && largest < 1e6 ? 0 : Math.floor(Math.log10(largest));
        const digits = clampInt(power - k, 0, 12);
        const list = [];
        for (let i = first; i <= last; i++) {
          list.push([shift(i * m, k), typeset(shift(i * m, k - power).toFixed(digits))]);
        }
        return { list, power };
      }
    }
  };
  const clampInt = (v, low, high) => Math.min(Math.max(v, low), high);

  const logarithmic = (low, high, most) => {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const decades = last - first + 1, pairs = [];
    if (decades >= 2) {
      const stride = Math.ceil(decades / most);
      for (let k = first; k <= last; k++) if (((k % stride) + stride) % stride === 0) pairs.push([1, k]);
    } else {
      for (let k = first - 1; k <= last; k++) for (const m of [1, 2, 5]) pairs.push([m, k]);
    }
    const inside = pairs.filter(([m, k]) => shift(m, k) >= low * (1 - 1e-9) && shift(m, k) <= high * (1 + 1e-9));
    if (inside.length < 2 && decades < 2) return linear(low, high, most);
    const written = short(inside.map(p => p[1]));
    return { list: inside.map(([m, k]) => [shift(m, k), powerLabel(false, m, k, written)]), power: 0 };
  };

  // Zero and the powers of ten beyond the threshold on both sides.
  const symmetric = (low, high, most, threshold) => {
    if (low >= threshold) return logarithmic(low, high, most);
    const first = Math.ceil(Math.log10(threshold) - 1e-9);
    const end = limit => limit > 0 ? Math.floor(Math.log10(limit) + 1e-9) : -Infinity;
    const down = end(-low), up = end(high), count = last => Math.max(last - first + 1, 0);
    const zero = low <= 0 && high >= 0;
    const stride = Math.ceil(Math.max(count(down) + count(up) + zero, 1) / most);
    const written = short([first, Math.max(down, up, first)]), list = zero ? [[0, '0']] : [];
    for (const [negative, last] of [[true, down], [false, up]]) {
      for (let k = first; k <= last; k++) {
        if ((k - first + 1) % stride) continue;
        list.push([negative ? -shift(1, k) : shift(1, k), powerLabel(negative, 1, k, written)]);
      }
    }
    const inside = list.filter(([v]) => v >= low && v <= high).sort((a, b) => a[0] - b[0]);
    return inside.length < 2 ? linear(low, high, most) : { list: inside, power: 0 };
  };

  // Labelled places of a range, and the power of ten that the labels leave out.
  const of = (scale, low, high, most) => {
    if (!(high > low)) return { list: [], power: 0 };
    const count = Math.max(most, 2);
    if (scale.kind === 'log') return logarithmic(low, high, count);
    if (scale.kind === 'symlog') return symmetric(low, high, count, scale.threshold);
    return linear(low, high, count);
  };

  // A value for a reader who asked for it: five significant digits, no trailing zeros, whole numbers in full.
  const number = v => {
    if (v == null || !isFinite(v)) return '–';
    if (Number.isInteger(v) && Math.abs(v) < 1e9) return typeset(String(v));
    const size = Math.abs(v);
    if (size >= 1e-4 && size < 1e6) return typeset(String(Number(v.toPrecision(5))));
    const [m, k] = v.toExponential(4).split('e');
    return typeset(String(Number(m))) + '×10' + raised(Number(k));
  };

  return { of, number, raised };
})();
