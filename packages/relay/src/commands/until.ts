/** Times that operators write: when something ends. */
import { InvalidArgumentError } from 'commander';
import { systemClock } from '../clock.ts';

const secondsOf: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400, w: 604_800 };

/** How times are written, for help texts. */
export const untilMeaning = 'when it ends: 12h, 7d, 4w, 2027-01-31 or 2027-01-31T12:00:00Z';

/** Parses the flag `--until`; commander reports what was expected. */
export function untilOf(text: string): number {
  const until = readUntil(text, systemClock.now());
  if (until !== undefined) return until;
  throw new InvalidArgumentError('Expected a time that has not passed, as 7d or 2027-01-31.');
}

/**
 * Reads when something ends: a time from now, or an instant (UTC; a date alone is its beginning).
 *
 * @param now Unix seconds
 * @returns Unix seconds; `undefined` if the text is no time, or one that has passed
 */
function readUntil(text: string, now: number): number | undefined {
  const [, count, unit = ''] = /^([1-9]\d{0,5})([mhdw])$/.exec(text) ?? [];
  if (count !== undefined) return now + Number(count) * (secondsOf[unit] as number);
  if (!/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?Z)?$/.test(text)) return undefined;
  const at = Math.floor(Date.parse(text) / 1_000);
  return at > now ? at : undefined;
}
