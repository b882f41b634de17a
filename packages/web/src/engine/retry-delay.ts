/** Milliseconds to wait after so many failures in a row: from a second to half a minute. */
export function delayAfter(failures: number): number {
  return Math.min(1_000 * 2 ** failures, 30_000);
}
