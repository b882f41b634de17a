/** Exit statuses. */

/** Every exit status with its meaning; `courier help` prints this table. */
export const exitCodes = {
  ok: { code: 0, meaning: 'done' },
  internal: { code: 1, meaning: 'an error of the program itself' },
  usage: { code: 2, meaning: 'wrong arguments, or a file that cannot be read' },
  notSetUp: { code: 3, meaning: 'no account is set up in the folder, or one already is' },
  unreachable: { code: 4, meaning: 'no relay could be reached' },
  refused: { code: 5, meaning: 'the relay refused; the message names its error code' },
  unverified: { code: 6, meaning: 'something does not verify: an answer, an invite, a request' },
  noWay: {
    code: 7,
    meaning:
      'not a contact or member, not permitted, no device or key for it, or another move under way',
  },
  key: { code: 8, meaning: 'the account key is needed, or the wallet does not open' },
  store: { code: 9, meaning: 'the folder belongs to another network or version' },
  interrupted: { code: 130, meaning: 'interrupted before it was done' },
} as const;

export type ExitName = keyof typeof exitCodes;

/** Wrong use of the command. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The command was interrupted. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  /** Whether messages or writes are stored that the relay has not confirmed. */
  readonly kept: boolean;

  constructor(kept: boolean) {
    super('interrupted');
    this.kept = kept;
  }
}
