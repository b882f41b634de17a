import { limit, period, timer } from './limit-kinds.ts';

/** Limits of which accounts come to be at home here, and of what accounts store in a day. */
export const accountLimits = {
  accountDailyBytes: limit(
    33_554_432,
    'Bytes of calls with which one account stores something in a day (UTC), attachments apart (02 §18).',
  ),
  groupDailyBytes: limit(
    268_435_456,
    'Bytes of messages sent to one group in a day (UTC); more are refused.',
  ),
  channelDailyBytes: limit(
    268_435_456,
    'Bytes of posts and edits in one channel in a day (UTC); more are refused.',
  ),
  accountStoredBytes: limit(
    536_870_912,
    'Bytes that one account stored in the time for which messages and posts are kept, with its attachments.',
  ),
  groupStoredBytes: limit(
    1_073_741_824,
    'Bytes of the events and messages of one group; with more, it gets no more messages.',
  ),
  channelStoredBytes: limit(
    1_073_741_824,
    'Bytes of the events of one channel; with more, it gets no more posts and edits.',
  ),
  accountReceivedDailyBytes: limit(
    134_217_728,
    'Bytes of messages from other relays that one account receives in a day (UTC).',
  ),
  foreignRelayDailyBytes: limit(
    134_217_728,
    'Bytes that one other relay delivers, and its accounts store here, in a day (UTC).',
  ),
  foreignDailyBytes: limit(
    536_870_912,
    'Bytes of all other relays and their accounts in a day (UTC); then each has one 64th of it.',
  ),
  policyQuestions: limit(64, 'Questions to the program of `policy.command` under way at once.'),
  policyQuestionsOfAccount: limit(8, 'Questions of one account that wait for their turn.'),
  policyTimeout: timer(1_000, 'Milliseconds that program has to answer a question.'),
  policyLogLines: limit(60, 'Lines of its standard error in the log in a minute.'),
  registrationInvites: limit(10_000, 'Invites stored at once (03 §4.3).'),
  registrationInviteNote: limit(256, "Bytes of the operator's remark about an invite."),
  claimsOfInvite: limit(
    1_000,
    'Accounts that showed an invite and are not here yet; one more replaces the oldest.',
  ),
  allowedAccounts: limit(100_000, 'Accounts that the operator let in and that are not here yet.'),
  registrationRequests: limit(10_000, 'Accounts that wait for approval.'),
  registrationRequestsPerAddress: limit(20, 'Accounts of one address that wait for approval.'),
  registrationRequestPeriod: period(604_800, 'Seconds for which an account waits for approval.'),
  blockedAccounts: limit(10_000, 'Accounts that the operator has blocked.'),
  blockedChannels: limit(10_000, 'Channels that the operator has closed here.'),
  blockedAddresses: limit(10_000, 'Addresses and networks that the operator has blocked.'),
};
