// A page of a server: asks for news, shows what has changed, and keeps the reader's place, zoom and choice of series.

jarz.live = (() => {
  const main = document.querySelector('main[data-live]'), PAUSE = 1000;
  const state = document.createElement('p');
  state.className = 'state';
  let version = null;

  const say = (text, name) => {
    state.textContent = text;
    state.dataset.state = name;
  };

  // Figures take over their new data, in the order they come; any other part is replaced if it differs.
  const show = html => {
    const fresh = new DOMParser().parseFromString(html, 'text/html').body;
    const now = [...main.children], old = now.filter(e => jarz.figures.has(e));
    const next = [...fresh.children].map((part, i) => {
      if (part.matches('figure.plot') && old.length) return renewed(old.shift(), part);
      if (now[i]?.open) part.open = true;
      return now[i]?.outerHTML === part.outerHTML ? now[i] : part;
    });
    now.filter(e => !next.includes(e)).forEach(e => {
      jarz.figures.get(e)?.remove();
      jarz.figures.delete(e);
      e.remove();
    });
    next.forEach((e, i) => { if (main.children[i] !== e) main.insertBefore(e, main.children[i] ?? null); });
    jarz.mount(main);
    document.title = main.querySelector('h1')?.textContent ?? document.title;
  };

  const renewed = (element, part) => {
    const text = e => e.querySelector('figcaption')?.textContent ?? '';
    if (text(element) !== text(part)) element.querySelector('figcaption')?.replaceChildren(text(part));
    element.querySelector('img').src = part.querySelector('img').src;
    jarz.figures.get(element).update(part.querySelector('script').textContent);
    return element;
  };

  const ask = async () => {
    const answer = await fetch(main.dataset.live, {
      cache: 'no-store',
      headers: version ? { 'If-None-Match': version } : {},
    });
    if (answer.status === 304) return;
    const text = await answer.text();
    if (!answer.ok) throw new Error(text.trim() || `the server answered ${answer.status}`);
    version = answer.headers.get('ETag');
    show(text);
  };

  const turn = async () => {
    try {
      if (!document.hidden) await ask();
      say('live', 'live');
    } catch (error) {
      const gone = error instanceof TypeError;
      say(gone ? 'the server does not answer; is jarz serve still running?' : error.message, 'lost');
    }
    setTimeout(turn, PAUSE);
  };

  main.before(state);
  say('live', 'live');
  setTimeout(turn, PAUSE);
  return { show };
})();
