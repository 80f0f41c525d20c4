// A page works without this: it is read again every few seconds. With it, only the
// parts that have changed are replaced, and what a person has scrolled, opened,
// selected or focused stays as it is.
'use strict';
(() => {
  const body = document.body;
  const source = body.dataset.live;
  if (!source) return;
  const every = Math.max(Number(body.dataset.every) || 5, 1) * 1000;
  const announcer = document.getElementById('announcer');
  const tags = new Map();
  let version = '';
  let said = '';
  let misses = 0;

  const announce = (text) => {
    if (announcer) announcer.textContent = text;
  };

  const box = (name) => document.querySelector('[data-fragment="' + name + '"]');

  // isBusy is true while a person selects text or presses something in a part.
  const isBusy = (part) => {
    const chosen = document.getSelection();
    return (chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode)) || part.querySelector(':active') !== null;
  };

  const replace = (part, html) => {
    const focused = part.contains(document.activeElement) ? document.activeElement.id : '';
    const open = [...part.querySelectorAll('details[id]')].map((d) => [d.id, d.open]);
    const scrolled = [...part.querySelectorAll('.scroll[id]')].map((s) => [s.id, s.scrollLeft, s.scrollTop]);
    const [x, y] = [window.scrollX, window.scrollY];
    const fresh = document.createElement('template');
    fresh.innerHTML = html;
    part.replaceChildren(fresh.content);
    for (const [id, was] of open) {
      const d = document.getElementById(id);
      if (d) d.open = was;
    }
    for (const [id, left, top] of scrolled) {
      const s = document.getElementById(id);
      if (s) s.scrollTo({ left, top, behavior: 'instant' });
    }
    if (focused) {
      const again = document.getElementById(focused);
      if (again) again.focus({ preventScroll: true });
    }
    window.scrollTo({ left: x, top: y, behavior: 'instant' });
  };

  const read = async () => {
    const url = new URL(source, location.href);
    url.searchParams.set('offset', String(-new Date().getTimezoneOffset())); // minutes: times in the person's own zone
    url.searchParams.set('have', [...tags.values()].join(','));
    const answer = await fetch(url, { signal: AbortSignal.timeout(10000), credentials: 'same-origin' });
    if (answer.status === 401 || answer.status === 403) {
      location.reload(); // the session is over
      return;
    }
    if (!answer.ok) throw new Error('status ' + answer.status);
    const news = await answer.json();
    if (version && version !== news.version) {
      location.reload(); // another version of the program
      return;
    }
    version = news.version;
    for (const [name, { tag, html }] of Object.entries(news.fragments)) {
      const part = box(name);
      if (!part || isBusy(part)) continue;
      tags.set(name, tag);
      replace(part, html);
    }
    const now = document.querySelector('[data-announce]');
    if (now && now.textContent !== said) {
      if (said) announce(now.textContent);
      said = now.textContent;
    }
    misses = 0;
    body.classList.remove('lost');
    body.dataset.read = String(Number(body.dataset.read || 0) + 1);
  };

  const poll = async () => {
    try {
      if (!document.hidden) await read();
    } catch {
      misses += 1;
      if (misses === 2) {
        body.classList.add('lost');
        announce('No answer any more: what is shown is old.');
      }
    }
    setTimeout(poll, every);
  };

  document.addEventListener('visibilitychange', () => { if (!document.hidden) read().catch(() => {}); });
  poll();
})();
