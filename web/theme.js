// Before the first paint, so that nothing flashes in the wrong colours. No module: those come later.
(() => {
  const theme = localStorage.getItem('duet-rpc.theme');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
})();
