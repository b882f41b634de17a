export { type CallOptions, findRunningRelay } from './client.ts';
export { mostTop } from './inventory/totals.ts';
export { openAdminInterface } from './open.ts';
export { runVerb } from './verb.ts';
export { mostDays, mostUses } from './verbs/invite.ts';
