export const text = "你好 😀"; export const wrong: number = text + nowhere;
