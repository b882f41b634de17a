/** Times that operators write: when something ends. */

const secondsOf: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400, w: 604_800 };

/** How times are written, for help texts. */
export const untilMeaning = 'when it ends: 12h, 7d, 4w, 2027-01-31 or 2027-01-31T12:00:00Z';

/**
 * Reads when something ends: a time from now, or an instant (UTC; a date alone is its beginning).
 *
 * @param now Unix seconds
 * @returns Unix seconds; `undefined` if the text is no time, or one that has passed
 * @example
 * readUntil('7d', 1_700_000_000); // 1_700_604_800
 */
export function readUntil(text: string, now: number): number | undefined {
  const [, count, unit = ''] = /^([1-9]\d{0,5})([mhdw])$/.exec(text) ?? [];
  if (count !== undefined) return now + Number(count) * (secondsOf[unit] as number);
  if (!/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?Z)?$/.test(text)) return undefined;
  const at = Math.floor(Date.parse(text) / 1_000);
  return at > now ? at : undefined;
}
