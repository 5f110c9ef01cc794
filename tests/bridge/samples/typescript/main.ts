import { greet } from "./greeting";

const text = "ää 你好 😀"; const length: number = greet(text);
console.log(length);
