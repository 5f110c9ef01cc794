/** Counts the letters of a name. */
export function greet(name: string): number {
  return name.length;
}
