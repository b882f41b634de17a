import { ProtocolError } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';

type Context = Pick<RelayContext, 'blocks'>;

/** Whether the operator blocks one of the accounts now. */
export function isBlocked({ blocks }: Context, ...accounts: readonly string[]): boolean {
  return accounts.some((account) => blocks.hasAccount(account));
}

/**
 * Refuses what concerns an account that the operator blocks now (02 §18).
 *
 * @throws ProtocolError `forbidden`
 */
export function requireUnblocked(context: Context, ...accounts: readonly string[]): void {
  const blocked = accounts.find((account) => isBlocked(context, account));
  if (blocked === undefined) return;
  throw new ProtocolError('forbidden', `the operator of this relay blocked ${blocked}`);
}
