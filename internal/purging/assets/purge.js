// The page asks the API below /api/v1 as any other client does, with the token in a
// header. A token is kept for this tab alone, until it is closed.
'use strict';
(() => {
  const words = JSON.parse(document.body.dataset.words);
  const api = '/api/v1/purge';
  const key = 'karui-token';
  const $ = (id) => document.getElementById(id);
  const say = (text, values = {}) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '');

  let token = '';
  try { token = sessionStorage.getItem(key) || ''; } catch { /* a browser that keeps nothing */ }
  let sites = [];
  let timer = 0;
  const states = new Map();

  const keep = (value) => {
    token = value;
    try {
      if (value) sessionStorage.setItem(key, value); else sessionStorage.removeItem(key);
    } catch { /* it is kept until the page is left */ }
  };

  class Refused extends Error {
    constructor(status, message) { super(message); this.status = status; }
  }

  const ask = async (path, body) => {
    const headers = {};
    if (token) headers.Authorization = 'Bearer ' + token;
    if (body) headers['Content-Type'] = 'application/json';
    let answer;
    try {
      answer = await fetch(api + path, {
        method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body),
        credentials: 'omit', cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(70000),
      });
    } catch {
      throw new Refused(0, words.away);
    }
    let value = null;
    try { value = await answer.json(); } catch { /* said below */ }
    if (!answer.ok) {
      const e = value && value.error;
      throw new Refused(answer.status, e ? e.message + (e.remedy ? ': ' + e.remedy : '') : 'HTTP ' + answer.status);
    }
    return value;
  };

  const element = (name, className, text) => {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  };

  // shown says what became of a purge, in words.
  const shown = (p) => {
    const edge = p.edge;
    switch (edge.state) {
      case 'running': return [words.running, 'warn'];
      case 'failed': return [words.failed, 'bad'];
      default: return [words.done, 'good'];
    }
  };

  const about = (p) => {
    const edge = p.edge;
    switch (edge.state) {
      case 'none': return words.about_none;
      case 'skipped': return words.about_skipped;
      case 'done': return say(words.about_done, { edge: edge.distribution });
      case 'failed': return words.about_failed;
    }
    return say(words.about_running, { edge: edge.distribution, completed: edge.completed || 0, paths: edge.paths });
  };

  const item = (p) => {
    const li = element('li');
    li.dataset.id = p.id;
    li.dataset.state = p.state;
    const head = element('p', 'head');
    const [word, tone] = shown(p);
    head.append(element('span', 'pill ' + tone, word), element('b', '', p.site));
    const at = element('time', '', new Date(p.at).toLocaleString(document.documentElement.lang));
    at.dateTime = p.at;
    head.append(at);
    if (p.by) head.append(element('span', 'note', p.by));
    li.append(head);
    const paths = element('p', 'paths');
    p.prefixes.forEach((prefix, i) => {
      if (i) paths.append(' ');
      let text = prefix;
      try { text = decodeURI(prefix); } catch { /* not UTF-8: as it is */ }
      paths.append(element('code', '', text));
    });
    if (p.count > p.prefixes.length) paths.append(' ' + say(words.more, { n: p.count - p.prefixes.length }));
    li.append(paths, element('p', 'what', about(p)));
    if (p.edge.state === 'running') {
      const bar = element('progress');
      bar.max = p.edge.paths;
      if (p.edge.completed) bar.value = p.edge.completed;
      bar.setAttribute('aria-label', words.running);
      li.append(bar);
      if (p.edge.waits) li.append(element('p', 'what', words.waits + ' ' + p.edge.waits));
    }
    for (const remark of [p.remark, ...(p.edge.remarks || [])].filter(Boolean)) li.append(element('p', 'what', remark));
    if (p.edge.failure) {
      li.append(element('p', 'bad-text', p.edge.failure.message), element('p', 'what', words.remedy + ' ' + p.edge.failure.remedy));
    }
    return li;
  };

  const draw = (list) => {
    const known = JSON.stringify(sites) === JSON.stringify(list.sites);
    sites = list.sites;
    const select = $('site');
    if (!known) {
      const chosen = select.value;
      select.replaceChildren(...sites.map((s) => { const o = element('option', '', s.id); o.value = s.id; return o; }));
      if (sites.some((s) => s.id === chosen)) select.value = chosen;
      choose();
    }
    $('none').hidden = list.purges.length > 0;
    $('purges').replaceChildren(...list.purges.map(item));
    for (const p of list.purges) {
      if (states.has(p.id) && states.get(p.id) !== p.state) $('announcer').textContent = p.site + ': ' + shown(p)[0];
      states.set(p.id, p.state);
    }
    return list.purges.some((p) => p.state === 'running');
  };

  const choose = () => {
    const site = sites.find((s) => s.id === $('site').value);
    const edge = Boolean(site && site.distribution);
    $('edge-field').hidden = !edge;
    $('exact-field').hidden = !edge;
    $('no-edge').hidden = edge;
    $('about-edge').hidden = !edge;
    $('edge-name').textContent = edge ? site.distribution : '';
  };

  const enter = (problem) => {
    clearTimeout(timer);
    keep('');
    states.clear();
    for (const id of ['ask', 'done', 'who', 'about-edge']) $(id).hidden = true;
    $('enter').hidden = false;
    $('enter-error').textContent = problem || '';
    $('token').toggleAttribute('aria-invalid', false);
    if (problem) $('token').setAttribute('aria-invalid', 'true');
    $('token').focus();
  };

  const inside = () => {
    $('enter').hidden = true;
    for (const id of ['ask', 'done']) $(id).hidden = false;
    $('who').hidden = !token;
    $('who-text').textContent = words.signed;
  };

  // refresh reads the list, again soon while something is under way.
  const refresh = async () => {
    clearTimeout(timer);
    let soon = true;
    try {
      soon = draw(await ask('?limit=20'));
      if ($('ask').hidden) inside();
      if ($('ask-error').dataset.away) { $('ask-error').textContent = ''; delete $('ask-error').dataset.away; }
    } catch (e) {
      if (e.status === 401 || e.status === 403) {
        enter(token ? e.message : '');
        return;
      }
      if ($('ask').hidden) {
        $('enter').hidden = false;
        $('enter-error').textContent = e.message;
      } else {
        $('ask-error').textContent = e.message;
        $('ask-error').dataset.away = 'yes';
      }
    }
    timer = setTimeout(refresh, soon ? 2000 : 15000);
  };

  $('enter-form').addEventListener('submit', (event) => {
    event.preventDefault();
    keep($('token').value.trim());
    $('token').value = '';
    refresh();
  });
  $('leave').addEventListener('click', () => enter(''));
  $('site').addEventListener('change', choose);

  const sure = (text) => new Promise((resolve) => {
    const dialog = $('sure');
    $('sure-text').textContent = text;
    // Not by the event of closing, which comes late: perhaps into the next question.
    const answer = (yes) => {
      dialog.close();
      resolve(yes);
    };
    $('sure-yes').onclick = () => answer(true);
    $('sure-no').onclick = () => answer(false);
    dialog.oncancel = (event) => {
      event.preventDefault();
      answer(false);
    };
    dialog.showModal();
    $('sure-no').focus();
  });

  // whole tells a line that means all of a site.
  const whole = (line) => /^(\w+:\/\/[^/]*)?\/?\**$/.test(line);

  let busy = false;
  $('ask-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    if (busy) return;
    const lines = $('prefixes').value.split('\n').map((l) => l.trim()).filter((l) => l);
    const fail = (text) => {
      $('ask-error').textContent = text;
      $('prefixes').setAttribute('aria-invalid', 'true');
      $('prefixes').focus();
    };
    $('ask-error').textContent = '';
    $('prefixes').removeAttribute('aria-invalid');
    if (!lines.length) return fail(words.empty);
    const site = $('site').value;
    if (lines.some(whole) && !await sure(say(words.sure, { site }))) return;
    busy = true;
    $('ask-button').setAttribute('aria-disabled', 'true');
    try {
      const edge = !$('edge-field').hidden;
      const p = await ask('', { site, prefixes: lines, edge: edge && $('edge').checked, exact: edge && $('exact').checked });
      $('prefixes').value = '';
      $('announcer').textContent = words.acknowledged;
      states.set(p.id, p.state);
      await refresh();
    } catch (e) {
      if (e.status === 401) enter(e.message); else fail(e.message);
    } finally {
      busy = false;
      $('ask-button').removeAttribute('aria-disabled');
    }
  });

  document.addEventListener('visibilitychange', () => { if (!document.hidden && !$('ask').hidden) refresh(); });
  refresh();
})();
