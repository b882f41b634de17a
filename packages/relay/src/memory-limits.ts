import { limit } from './limit-kinds.ts';

/** The limits of what the process remembers; with those of bytes they fit `memory`. */
export const memoryLimits = {
  memory: limit(
    0,
    'Bytes that the totals of all kinds of memory may sum to; 0 for half of what the process may have.',
    0,
  ),
  subscriptions: limit(
    250_000,
    'Subscriptions to groups by all connections of the process; to channels as many.',
  ),
  subscriptionsPerAccount: limit(
    10_000,
    'Subscriptions to groups by all connections of one account to the process; to channels as many.',
  ),
  rememberedCallers: limit(
    100_000,
    'Addresses, accounts or relays whose allowance is remembered, of each kind of allowance.',
  ),
  cachedSessions: limit(20_000, 'Sessions remembered for some seconds after they were read.'),
  accountFactsBytes: limit(
    16_777_216,
    'Bytes of what is remembered of accounts at home here and their devices, to accept messages without reading it again.',
  ),
  cachedKeys: limit(20_000, 'Public keys remembered for verifying signatures.'),
  verifiedTexts: limit(50_000, 'Texts remembered as verified, by digest.'),
};
