int broken() { /* 你好 😀 */
  return nowhere;
}
