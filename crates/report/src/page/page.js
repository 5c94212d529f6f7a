// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws the timeline. Reads the page's own data, and writes text as text only.
'use strict';
/** What stands beside a button is copied; where the browser forbids that, it is chosen, for the keys that copy. */
for (const button of document.querySelectorAll('.copy')) {
  const command = button.parentElement.querySelector('code');
  button.hidden = false;
  button.addEventListener('click', () => {
    getSelection().selectAllChildren(command);
    const copied = navigator.clipboard?.writeText(command.textContent) ?? Promise.reject(new Error('no clipboard'));
    copied.then(() => 'Copied', () => document.execCommand('copy') ? 'Copied' : 'Press Ctrl+C')
      .then(text => { button.textContent = text; });
  });
}

(() => {
  const place = document.getElementById('timeline');
  const data = JSON.parse(document.getElementById('data').textContent);
  if (!place || !data || !data.length_us) return;

  const TITLES = Object.fromEntries(data.groups);
  const HEIGHTS = { chain: 30, cpus: 18, threads: 18, disks: 44, pressure: 30, others: 14 };
  const LANES_MAX = 4, LANE = 9, NARROWEST_US = 20, STEP = 0.2;
  const ORDER = Object.keys(TITLES);
  const evidence = document.getElementById('evidence');

  const svg = (name, attributes = {}) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const html = (name, text = '') => Object.assign(document.createElement(name), { textContent: text });

  /** A duration for people, as the rest of the page has them. */
  const span = us => us >= 999500 ? `${(us / 1e6).toFixed(2)} s` : us >= 9950 ? `${(us / 1e3).toFixed(0)} ms`
    : us >= 1000 ? `${(us / 1e3).toFixed(1)} ms` : `${us.toFixed(0)} µs`;
  /** A time, from the begin of the wait on. */
  const since = us => (us < data.interval_us[0] ? '−' : '') + span(Math.abs(us - data.interval_us[0]));

  /** Bars that overlap get lanes of their own, as far as there are some. */
  const spread = bars => {
    const free = [];
    for (const bar of bars) {
      let lane = free.findIndex(until => until <= bar.from);
      if (lane < 0) lane = free.length < LANES_MAX ? free.push(0) - 1 : LANES_MAX - 1;
      free[lane] = Math.max(bar.to, bar.from + data.length_us / 400);
      bar.lane = lane;
    }
    return free.length;
  };

  const track = ({ group, name, bars }) => {
    bars = bars.map(([from, length, look, text, count = 1, percent = 100]) =>
      ({ from, to: from + length, look, text: data.texts[text], count, percent, lane: 0 }));
    const loose = group === 'input' || group === 'messages' || group === 'started';
    const lanes = loose ? spread(bars) : 1;
    return { group, name, bars, lanes, loose, height: loose ? lanes * LANE + 4 : HEIGHTS[group] };
  };

  const curve = ({ group, name, unit, steps, series }) => {
    const total = at => series.reduce((sum, one) => sum + one.values[at], 0);
    const most = Math.max(...steps.map((_, at) => total(at)), unit === '%' ? 100 : 1);
    const bars = steps.map(([from, to], at) => ({
      from, to, look: series[0] ? series[0].look : 0, count: 1, percent: 100, lane: 0,
      text: series.map(one => `${one.name}: ${one.values[at]} ${unit}`).join('\n'),
    }));
    const label = unit === '%' ? name : `${name} (up to ${most.toFixed(most < 10 ? 1 : 0)})`;
    return { group, name: label, bars, series, most, lanes: 1, loose: false, height: HEIGHTS[group] };
  };

  const tracks = [...data.tracks.map(track), ...data.curves.map(curve)]
    .sort((a, b) => ORDER.indexOf(a.group) - ORDER.indexOf(b.group));
  let view = [0, data.length_us];
  let everything = false;
  let chosen = null;
  let width = 1;

  const x = us => (us - view[0]) / (view[1] - view[0]) * width;
  const time = px => view[0] + px / width * (view[1] - view[0]);

  /** Lays out the rows once; their content is redrawn for each view. */
  const build = () => {
    let group = '';
    const row = (label, height) => {
      const element = html('div');
      element.className = 'row';
      const picture = svg('svg', { height, 'aria-hidden': 'true' });
      const name = html('span', label);
      if (label) name.title = label;
      element.append(name, picture);
      place.append(element);
      return { element, picture };
    };
    const axis = row('', 20);
    axis.element.classList.add('axis');
    for (const one of tracks) {
      if (one.group !== group) {
        const title = html('h3', TITLES[group = one.group]);
        title.classList.add(group);
        place.append(title);
      }
      Object.assign(one, row(one.group === 'chain' ? '' : one.name, one.height));
      one.element.classList.add(group);
      one.picture.dataset.track = tracks.indexOf(one);
    }
    return axis;
  };

  /** Where a bar lies in its row: from top, and how high. */
  const extent = (one, bar) => {
    if (one.loose) return [2 + bar.lane * LANE, LANE - 2];
    const height = Math.max(2, one.height * bar.percent / 100);
    return [one.height - height, height];
  };

  const box = (left, top, wide, height) =>
    `M${left.toFixed(1)} ${top.toFixed(1)}h${wide.toFixed(1)}v${height.toFixed(1)}h${(-wide).toFixed(1)}z`;

  /** All bars of a look as one path. What is narrower than a pixel is as wide as one, and drawn once. */
  const paths = one => {
    const shapes = new Map(), last = new Map();
    for (const bar of one.bars) {
      if (bar.to < view[0] || bar.from > view[1]) continue;
      const lo = Math.max(-2, x(bar.from)), hi = Math.min(width + 2, x(bar.to));
      const wide = Math.max(one.loose ? 2 : 1, hi - lo);
      const key = bar.look * 8 + bar.lane;
      if (wide <= 2 && lo < (last.get(key) ?? -9)) continue;
      last.set(key, lo + wide * 0.5);
      const [top, height] = extent(one, bar);
      shapes.set(bar.look, (shapes.get(bar.look) ?? '') + box(lo, top, wide, height));
    }
    return [...shapes].map(([look, d]) => svg('path', { d, class: `look-${data.looks[look][0]}` }));
  };

  /** Stacked steps of a curve. */
  const areas = one => {
    const below = one.bars.map(() => 0);
    return one.series.map(({ look, values }) => {
      let d = '';
      one.bars.forEach((bar, at) => {
        const height = values[at] / one.most * one.height, from = below[at];
        below[at] += height;
        if (!height || bar.to < view[0] || bar.from > view[1]) return;
        const lo = x(bar.from), wide = Math.max(0.5, x(bar.to) - lo);
        d += box(lo, one.height - from - height, wide, height);
      });
      return svg('path', { d, class: `look-${data.looks[look][0]}` });
    });
  };

  /** The kind of what the wait was for, where there is room for it: of pieces of one kind beside each other, once. */
  const names = one => {
    const groups = [];
    for (const bar of one.bars) {
      const lo = Math.max(0, x(bar.from)), hi = Math.min(width, x(bar.to)), kind = bar.text.split(':')[0];
      const last = groups[groups.length - 1];
      if (hi - lo < 3 && last && last.kind !== kind) continue;
      if (last && last.kind === kind) last.hi = Math.max(last.hi, hi);
      else groups.push({ lo, hi, kind });
    }
    return groups.filter(({ lo, hi, kind }) => hi - lo > kind.length * 7 + 16).map(({ lo, hi, kind }) => {
      const name = svg('text', { x: (lo + hi) / 2, y: one.height / 2 + 4, 'text-anchor': 'middle', class: 'name' });
      name.textContent = kind;
      return name;
    });
  };

  const ticks = () => {
    const least = (view[1] - view[0]) / Math.max(2, width / 90);
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map(digit => digit * power).find(size => size >= least);
    const first = Math.ceil((view[0] - data.interval_us[0]) / step);
    const places = [];
    for (let at = first; at * step + data.interval_us[0] <= view[1]; at++) places.push(at * step + data.interval_us[0]);
    return places;
  };

  const line = (us, height, name) => svg('line', { x1: x(us), x2: x(us), y1: 0, y2: height, class: name });

  const draw = () => {
    width = Math.max(50, axis.picture.clientWidth);
    const grid = ticks();
    axis.picture.replaceChildren(...grid.map(us => {
      const at = x(us), anchor = at < 20 ? 'start' : at > width - 20 ? 'end' : 'middle';
      const label = svg('text', { x: at, y: 14, 'text-anchor': anchor });
      label.textContent = Math.abs(us - data.interval_us[0]) < 0.5 ? '0' : since(us);
      return label;
    }));
    tracks.forEach((one, index) => {
      const [lo, hi] = data.interval_us.map(x);
      const wait = svg('rect', { x: lo, y: 0, width: Math.max(1, hi - lo), height: one.height, class: 'wait' });
      const content = one.series ? areas(one) : paths(one);
      const labels = one.group === 'chain' ? names(one) : [];
      one.picture.replaceChildren(wait, ...grid.map(us => line(us, one.height, 'grid')), ...content, ...labels);
      one.element.classList.toggle('active', chosen !== null && chosen.track === index);
      if (chosen !== null && chosen.track === index) mark(one, one.bars[chosen.bar]);
    });
  };

  const mark = (one, bar) => {
    const lo = x(bar.from), [top, height] = extent(one, bar), wide = Math.max(3, x(bar.to) - lo);
    one.picture.append(svg('rect', { x: lo, y: Math.max(1, top), width: wide, height: height - 1, class: 'chosen' }));
  };

  /** One drawing for all that happens between two frames. */
  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };

  const show = (lo, hi) => {
    const length = Math.min(data.length_us, Math.max(NARROWEST_US, hi - lo));
    const from = Math.min(Math.max(0, lo), data.length_us - length);
    view = [from, from + length];
    redraw();
  };
  const zoom = (factor, centre = (view[0] + view[1]) / 2) =>
    show(centre - (centre - view[0]) * factor, centre + (view[1] - centre) * factor);
  const pan = share => show(view[0] + share * (view[1] - view[0]), view[1] + share * (view[1] - view[0]));
  const whole = () => show(0, data.length_us);
  const wait = () => show(...data.interval_us);

  const choose = (index, at) => {
    chosen = index === null ? null : { track: index, bar: at };
    if (chosen === null) { evidence.textContent = ''; return redraw(); }
    const one = tracks[index], bar = one.bars[at];
    const sum = bar.count > 1 ? ` · ${bar.count} short stretches, ${bar.percent}% of the time:` : '';
    const look = one.series ? '' : ` · ${data.looks[bar.look][1]}`;
    const when = `from ${since(bar.from)} for ${span(bar.to - bar.from)}`;
    evidence.textContent = `${one.name} · ${when}${look}${sum}\n${bar.text}`;
    redraw();
  };

  /** The bar of a row at a time: the one that it lies in, else the nearest within a few pixels. */
  const find = (one, us, lane) => {
    const reach = 4 / width * (view[1] - view[0]);
    let best = -1, least = reach;
    one.bars.forEach((bar, at) => {
      if (one.loose && bar.lane !== lane) return;
      const away = us < bar.from ? bar.from - us : us > bar.to ? us - bar.to : 0;
      if (away <= least) { least = away; best = at; }
    });
    return best;
  };

  const point = event => {
    const picture = event.target.closest('svg[data-track]');
    if (!picture) return;
    const index = +picture.dataset.track, one = tracks[index], edge = picture.getBoundingClientRect();
    const lane = Math.min(one.lanes - 1, Math.max(0, Math.floor((event.clientY - edge.top - 2) / LANE)));
    const at = find(one, time(event.clientX - edge.left), lane);
    if (at >= 0 && !(chosen && chosen.track === index && chosen.bar === at)) choose(index, at);
  };

  /** The next bar of the row, brought into view. */
  const step = by => {
    if (chosen === null) return choose(0, 0);
    const { bars } = tracks[chosen.track];
    const at = Math.min(bars.length - 1, Math.max(0, chosen.bar + by)), { from, to } = bars[at];
    const length = view[1] - view[0];
    if (to < view[0] || from > view[1]) show((from + to) / 2 - length / 2, (from + to) / 2 + length / 2);
    choose(chosen.track, at);
  };
  /** The bar of another row at the same time. */
  const turn = by => {
    if (chosen === null) return choose(0, 0);
    const shown = everything ? tracks.length : tracks.findLastIndex(one => one.group !== 'others') + 1;
    const index = Math.min(shown - 1, Math.max(0, chosen.track + by));
    const { from, to } = tracks[chosen.track].bars[chosen.bar];
    const middle = (Math.max(from, view[0]) + Math.min(to, view[1])) / 2;
    const away = bar => middle < bar.from ? bar.from - middle : middle > bar.to ? middle - bar.to : 0;
    const at = tracks[index].bars.reduce((best, bar, at, bars) => away(bar) < away(bars[best]) ? at : best, 0);
    choose(index, at);
    tracks[index].element.scrollIntoView({ block: 'nearest' });
  };

  const KEYS = {
    ArrowLeft: event => event.shiftKey ? pan(-STEP) : step(-1),
    ArrowRight: event => event.shiftKey ? pan(STEP) : step(1),
    ArrowUp: () => turn(-1), ArrowDown: () => turn(1),
    '+': () => zoom(0.6), '=': () => zoom(0.6), '-': () => zoom(1 / 0.6),
    0: whole, Escape: () => choose(null),
  };
  const others = button => {
    everything = place.classList.toggle('everything');
    button.setAttribute('aria-pressed', everything);
    if (!everything && chosen !== null && tracks[chosen.track].group === 'others') choose(null);
    redraw();
  };
  const BUTTONS = {
    others, in: () => zoom(0.6), out: () => zoom(1 / 0.6), left: () => pan(-STEP), right: () => pan(STEP), all: whole, wait,
  };

  const axis = build();
  const under = event => time(event.clientX - axis.picture.getBoundingClientRect().left);
  place.addEventListener('keydown', event => {
    const act = event.ctrlKey || event.altKey || event.metaKey ? undefined : KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act(event);
  });
  place.addEventListener('wheel', event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, under(event));
  }, { passive: false });
  place.addEventListener('dblclick', event => zoom(0.4, under(event)));
  let grip = null;
  place.addEventListener('pointerdown', event => { grip = { at: event.clientX, view }; });
  addEventListener('pointerup', () => { grip = null; });
  place.addEventListener('pointermove', event => {
    if (!grip || !event.buttons) return point(event);
    const moved = (grip.at - event.clientX) / width * (grip.view[1] - grip.view[0]);
    show(grip.view[0] + moved, grip.view[1] + moved);
  });
  place.addEventListener('click', point);
  const tools = document.querySelector('.tools');
  tools.hidden = false;
  tools.addEventListener('click', event => BUTTONS[event.target.dataset.do]?.(event.target));
  new ResizeObserver(redraw).observe(axis.element);

  /** On paper what is folded up is open, and the whole is shown as wide as the sheet. */
  const opened = [];
  addEventListener('beforeprint', () => {
    for (const one of document.querySelectorAll('details:not([open])')) { one.open = true; opened.push(one); }
    view = [0, data.length_us];
    draw();
  });
  addEventListener('afterprint', () => { opened.splice(0).forEach(one => { one.open = false; }); draw(); });
  matchMedia('print').addEventListener('change', draw);
  draw();
  performance.mark('tipme-drawn');
})();
