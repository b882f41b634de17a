/**
 * Fixed sequences: each finds an error that random sequences find seldom or late. They start with
 * ann's channel, which ben moderates.
 */
import type { Step, StepOf } from './commands.ts';

const none = { topic: undefined, mood: undefined, proto: undefined };
const fine = { flaw: 'none' } as const;
const newest = { target: { readable: 0 } } as const;
const ever = { target: { post: 0 } } as const;

type Name = 'ann phone' | 'ann laptop' | 'ben phone' | 'cem phone' | 'dora phone';

const post = (by: Name = 'ann phone'): Step => ({
  ...{ kind: 'post', by, body: 'one', attachments: undefined, extras: none, ...fine },
});
const edit = (by: Name, facts: object): Step => ({
  ...{ kind: 'edit', by, ...newest, body: undefined, attachments: undefined, extras: none },
  ...fine,
  ...facts,
});
const remove = (by: Name, facts: object = newest): Step => ({
  ...{ kind: 'delete', by, ...newest, reason: undefined, ...fine },
  ...facts,
});
const repeat = (by: Name | undefined, change: 'none' | 'body' | 'device' = 'none'): Step => ({
  ...{ kind: 'repeat', by, which: 0, change },
});
const update = (moderators: ('ben' | 'cem')[]): StepOf<'update'> => ({
  ...{ kind: 'update', by: 'ann laptop', moderators, description: undefined, topic: undefined },
  ...{ ahead: 1, skew: 0, ...fine },
});
const close: Step = {
  ...{ kind: 'close', by: 'ann laptop', isMeant: true, ahead: 1, skew: 0, ...fine },
};
const keepFor = (retention: number): Step => ({ kind: 'restart', retention });
const wait = (seconds: number): Step => ({ kind: 'wait', seconds });
const job: Step = { kind: 'job' };
const late: Step = { kind: 'late', limit: 1 };
const follow: Step = { kind: 'follow', limit: 2 };

export const cases: Readonly<Record<string, readonly Step[]>> = {
  '06 §7.5: a deletion is stored as long as its post would have been': [
    ...[keepFor(200), post(), follow, keepFor(10), remove('ben phone'), wait(11), job],
    ...[remove('ann phone', ever), repeat(undefined), repeat(undefined, 'body'), follow, late],
    ...[wait(200), job, remove('ann phone', ever), repeat(undefined), late],
  ],
  '06 §7.3: between a deletion and the job nothing of the post is readable': [
    ...[post(), edit('ben phone', { body: 'two' }), post('ben phone'), follow],
    ...[remove('ann phone', { target: { readable: 1 } }), late, follow, job, late],
  ],
  '06 §7.5: descriptors and certificates of a long-lived post and its edits stay': [
    ...[keepFor(200), post(), keepFor(10), edit('ben phone', { body: 'two' }), post('ben phone')],
    ...[update(['cem']), post('cem phone'), update([]), wait(100), job, late, follow],
    ...[edit('ann laptop', { body: 'three' }), wait(200), job, late],
  ],
  '06 §5.2: a device that only deleted keeps its certificate, and no other does': [
    ...[keepFor(200), post('ann laptop'), remove('ben phone'), job, late, wait(100), job, late],
    ...[wait(200), job, late],
  ],
  '06 §7.4, §8.7: after the closure repeats are answered, and every other write is refused': [
    ...[post('ben phone'), update(['cem']), repeat(undefined), repeat(undefined, 'body'), close],
    ...[repeat(undefined), repeat('cem phone', 'device'), post(), remove('ann phone'), close],
    ...[edit('dora phone', { body: 'two' }), edit('ann phone', { body: 'two' }), update([])],
    ...[{ kind: 'report', by: 'dora phone', ...newest, reason: 'Spam' } as const, follow],
    ...[wait(100), job, late, repeat(undefined), repeat('dora phone', 'device')],
  ],
  '06 §8.7: a message ID belongs to one account, and can be used again after its deadline': [
    ...[post(), repeat('ben phone', 'device'), repeat('ann laptop', 'device'), remove('ben phone')],
    ...[repeat('ben phone'), job, wait(50), job, repeat('ben phone', 'device'), late],
  ],
  '06 §6.2: absent, null and the empty array are three states of attachments': [
    ...[post(), edit('ben phone', { attachments: [] }), edit('ben phone', { attachments: [] })],
    ...[edit('ann phone', { attachments: null }), edit('ann phone', { attachments: null })],
    ...[edit('ann phone', { body: null }), edit('ann phone', { body: null, attachments: [1] })],
    ...[edit('ann phone', { attachments: [] }), edit('ann phone', { attachments: [1] }), late],
    ...[edit('ben phone', { extras: { ...none, proto: { a: 1 } } }), follow],
    ...[edit('ben phone', { extras: { ...none, proto: null, mood: null } }), late],
  ],
  '06 §8: the form of an update is checked before its caller': [
    ...(['null', 'context', 'closed'] as const).map(
      (flaw): Step => ({ ...update([]), by: 'cem phone', flaw }),
    ),
  ],
};
