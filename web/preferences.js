// What a person has chosen for this browser.

/** @param {string} name @param {string} fallback */
export function preference(name, fallback) {
  return localStorage.getItem(`duet-rpc.${name}`) ?? fallback;
}

/** @param {string} name @param {string} value */
export function prefer(name, value) {
  localStorage.setItem(`duet-rpc.${name}`, value);
}

/** `auto` follows the system. @param {string} theme */
export function applyTheme(theme) {
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}
