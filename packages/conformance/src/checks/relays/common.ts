import { NotApplicable } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import type { TestContext } from '../../fixtures/test-context.ts';

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

/**
 * Returns how often the relay under test reads its registry, in seconds.
 *
 * @throws NotApplicable if that is unknown, or too long to wait for
 */
export function requireRegistryRefresh({ target }: TestContext): number {
  const { registryRefresh } = target.seats ?? {};
  if (registryRefresh !== undefined && registryRefresh <= 60) return registryRefresh;
  throw new NotApplicable(
    'the check waits for the relay to read its registry: --registry-refresh states how often, at most 60 s',
  );
}

/** @throws NotApplicable if the kit cannot restart the relay under test */
export function requireRestart({ target }: TestContext): () => Promise<void> {
  if (target.restart !== undefined) return target.restart;
  throw new NotApplicable('--restart is missing: a command that restarts the relay');
}
