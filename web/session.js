// Who this browser is to the daemon: a token in localStorage, got for a login code and given back at sign-out; or, at the
// TLS door, the browser's certificate, and no token is needed.

const key = 'duet-rpc.token';
const patience = 10000;

/** Stands for a token where a certificate says who we are. */
export const byCertificate = '';

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
    cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(patience)});
  const text = await response.text();
  const told = text === '' ? {} : JSON.parse(text);
  if (!response.ok) throw new Refused(response.status, told.error ?? '', told.message ?? `status ${response.status}`);
  return told;
}

/** @param {string} code @returns {Promise<string>} the token, which is kept */
export async function signIn(code) {
  const before = storedToken();
  const {token} = await post('/login', {code}, null);
  localStorage.setItem(key, token);
  if (before) post('/logout', {}, before).catch(() => {});  // nobody holds it any more
  return token;
}

/** Ends the token, for all tabs and for good. Throws if the daemon could not be told. @param {string} token */
export async function signOut(token) {
  forgetToken();
  await post('/logout', {}, token);
}

/** Whether the daemon answers and knows the token, or us; a WebSocket that fails does not say why. @param {string} token
 *  @returns {Promise<'good' | 'ended' | 'refused' | 'unreachable'>} */
export async function probe(token) {
  try {
    await post('/rpc', {jsonrpc: '2.0', id: 1, method: 'session.info'}, token);
    return 'good';
  } catch (error) {
    const status = error instanceof Refused ? error.status : 0;
    return status === 401 ? 'ended' : status === 403 ? 'refused' : 'unreachable';
  }
}
