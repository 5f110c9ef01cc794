// Who this browser is to the daemon: a token in localStorage, got for a login code and given back at sign-out.

const key = 'duet-rpc.token';

/** @returns {string | null} */
export function storedToken() {
  const token = localStorage.getItem(key);
  return token !== null && /^duet_[A-Za-z0-9_-]{43}$/.test(token) ? token : null;
}

export function forgetToken() {
  localStorage.removeItem(key);
}

/** Other tabs of this browser sign in and out, too. @param {(token: string | null) => void} told */
export function onTokenChange(told) {
  addEventListener('storage', (event) => {
    if (event.key === key || event.key === null) told(storedToken());
  });
}

export class Refused extends Error {
  /** @param {number} status @param {string} word @param {string} message */
  constructor(status, word, message) {
    super(message);
    this.status = status;
    this.word = word;
  }
}

/** @param {string} path @param {object} body @param {string | null} token */
async function post(path, body, token) {
  /** @type {Record<string, string>} */
  const headers = {'Content-Type': 'application/json'};
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await fetch(path, {method: 'POST', headers, body: JSON.stringify(body), credentials: 'omit',
    cache: 'no-store', redirect: 'error'});
  const text = await response.text();
  const told = text === '' ? {} : JSON.parse(text);
  if (!response.ok) throw new Refused(response.status, told.error ?? '', told.message ?? `status ${response.status}`);
  return told;
}

/** @param {string} code @returns {Promise<string>} the token, which is kept */
export async function signIn(code) {
  const {token} = await post('/login', {code}, null);
  localStorage.setItem(key, token);
  return token;
}

/** Ends the token, for all tabs and for good. A daemon that is not there ends it when it expires. @param {string} token */
export async function signOut(token) {
  try {
    await post('/logout', {}, token);
  } finally {
    forgetToken();
  }
}

/** Whether the daemon answers and still knows the token; a WebSocket that fails does not say why. @param {string} token
 *  @returns {Promise<'good' | 'ended' | 'unreachable'>} */
export async function probe(token) {
  try {
    await post('/rpc', {jsonrpc: '2.0', id: 1, method: 'session.info'}, token);
    return 'good';
  } catch (error) {
    return error instanceof Refused && error.status === 401 ? 'ended' : 'unreachable';
  }
}
