export const text = "你好 😀"; export const wrong: string = text + nowhere;
