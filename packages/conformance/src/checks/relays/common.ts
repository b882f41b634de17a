import { checksOf } from '../../check.ts';

type Checks = ReturnType<typeof checksOf>;
type Text = Parameters<Checks['check']>[1];
type Run = Parameters<Checks['check']>[2];

/** Collects checks for which the kit is another relay. */
export function relayChecksOf(topic: string): {
  check(word: string, text: Omit<Text, 'transports'>, run: Run): void;
  readonly list: Checks['list'];
} {
  const { check, list } = checksOf(topic);
  return { list, check: (word, text, run) => check(word, { ...text, transports: ['relay'] }, run) };
}
