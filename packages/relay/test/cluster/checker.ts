/**
 * Decides from what clients saw, and from nothing else, whether a cluster kept its promises.
 *
 * A log is taken as complete: when it ends, everybody has had the chance to read everything.
 */
import type { LogEntry, Seen } from './log.ts';

/** The promises. */
export type Rule =
  /** A confirmed message is in the timeline of each reader (04 §12.1, §17.1). */
  | 'lost'
  /** A message has one record in a timeline (04 §15.1). */
  | 'doubled'
  /** A sequence stands for one record, for all devices and for ever (04 §17.1). */
  | 'reused'
  /** Pages ascend from where they were asked for (04 §18). */
  | 'unsorted'
  /** A message sent after a confirmation comes after the confirmed message (04 §17.1). */
  | 'swapped'
  /** Every later message comes after a head that was seen, and heads of a connection rise. */
  | 'backwards'
  /** A head names a record that is there: hints leave after the commit (02 §12.3). */
  | 'phantom'
  /** A message that was refused, or never sent, is in no timeline (04 §12.1). */
  | 'ghost'
  /** A confirmed message is not refused later, nor a refused one confirmed (04 §15.1). */
  | 'changed'
  /**
   * A removed device hears nothing new (02 §10.3, §12.3, §12.4): no revision from the one that
   * removed it on, and no head of a record whose message was sent after the removal was confirmed,
   * or of a later record. Messages in delivery at that time may arrive.
   */
  | 'late notice'
  /** After the confirmation every call of a removed device is `unauthorized` (02 §10.3). */
  | 'still served'
  /** A device that was not removed keeps its session (02 §10.3). */
  | 'cut off'
  /** A nonce is consumed by the first attempt (02 §9.2). */
  | 'nonce reused'
  /** A fault is told as `temporarily_unavailable`, or not at all (02 §4). */
  | 'internal error';

export interface Problem {
  readonly rule: Rule;
  readonly text: string;
}

/** Outcomes that say nothing about whether this or an earlier try of the message was stored. */
const openOutcomes: readonly string[] = [
  'lost',
  'temporarily_unavailable',
  'rate_limited',
  'unauthorized',
  'internal_error',
];

type Of<K extends Seen['kind']> = Extract<LogEntry, { kind: K }>;

interface Message {
  readonly sending: Of<'sending'>;
  outcome: 'open' | 'accepted' | 'refused';
  /** The greatest sequence, by account, that was known before it was sent: confirmed, or seen. */
  readonly confirmedBefore: ReadonlyMap<string, number>;
  readonly seenBefore: ReadonlyMap<string, number>;
  /** Devices of its two accounts whose removal was confirmed before it was sent. */
  readonly removedBefore: ReadonlySet<string>;
}

/** The timelines as all devices together saw them. */
class Timelines {
  /** By account: content of each sequence, and sequence of each logical key. */
  readonly #contents = new Map<string, Map<number, string>>();
  readonly #sequences = new Map<string, Map<string, number>>();
  readonly #last = new Map<string, number>();
  /** By device: contents it was shown, as it went on and when it read again. */
  readonly shown = { on: new Map<string, Set<string>>(), again: new Map<string, Set<string>>() };

  take(page: Of<'page'>, report: (rule: Rule, text: string) => void): void {
    const { account, device } = page;
    const contents = of(this.#contents, account, () => new Map<number, string>());
    const sequences = of(this.#sequences, account, () => new Map<string, number>());
    const shown = of(this.shown[page.reading], device, () => new Set<string>());
    let last = page.after;
    for (const { sequence, id, content } of page.entries) {
      if (sequence <= last) report('unsorted', `${device} got ${sequence} after ${last}`);
      last = sequence;
      const known = contents.get(sequence) ?? content;
      if (known !== content) report('reused', `${account} ${sequence}: ${known} and ${content}`);
      contents.set(sequence, known);
      const place = sequences.get(id) ?? sequence;
      if (place !== sequence) report('doubled', `${account}: ${id} at ${place} and ${sequence}`);
      sequences.set(id, place);
      shown.add(content);
    }
    raise(this.#last, account, last);
  }

  /** Sequence of a message in an account's timeline. */
  place(account: string, id: string): number | undefined {
    return this.#sequences.get(account)?.get(id);
  }

  /** Sequence at which this very content stands, and not another under the same ID. */
  placeOf(account: string, { id, content }: Pick<Of<'sending'>, 'id' | 'content'>) {
    const sequence = this.place(account, id);
    if (sequence === undefined) return undefined;
    return this.#contents.get(account)?.get(sequence) === content ? sequence : undefined;
  }

  /** The greatest sequence of an account, -1 where it has none. */
  last(account: string): number {
    return this.#last.get(account) ?? -1;
  }

  get contents(): Iterable<readonly [string, ReadonlyMap<number, string>]> {
    return this.#contents;
  }
}

/**
 * Everything in a log that must not be.
 *
 * @example
 * const log = [{ kind: 'sending', … }, …];
 * check(log); // [{ rule: 'lost', text: 'a1 never got …' }]
 */
export function check(log: readonly LogEntry[]): Problem[] {
  const problems: Problem[] = [];
  const report = (rule: Rule, text: string) => void problems.push({ rule, text });
  // Timelines come first: where a message stands is asked about everything else.
  const timelines = new Timelines();
  for (const seen of log) if (seen.kind === 'page') timelines.take(seen, report);
  const messages = followMessages(log, timelines, report);
  checkRecords(messages, timelines, report);
  checkReaders(log, messages, { timelines, report });
  checkHeads(log, timelines, report);
  checkRemovals(log, messages, { timelines, report });
  checkSessions(log, report);
  checkNonces(log, report);
  return problems;
}

type Report = (rule: Rule, text: string) => void;

/** What became of each message, and what was known when it was sent. */
function followMessages(
  log: readonly LogEntry[],
  timelines: Timelines,
  report: Report,
): Map<string, Message> {
  const messages = new Map<string, Message>();
  const calls = new Map<number, Message>();
  const confirmed = new Map<string, number>();
  const heads = new Map<string, number>();
  const removed = new Set<string>();
  for (const seen of log) {
    switch (seen.kind) {
      case 'sending':
        messages.set(seen.content, {
          sending: seen,
          outcome: 'open',
          confirmedBefore: atMoment(confirmed, seen),
          seenBefore: atMoment(heads, seen),
          removedBefore: new Set(removed),
        });
        break;
      case 'call': {
        const message = messages.get(seen.content ?? '');
        if (message !== undefined) calls.set(seen.call, message);
        break;
      }
      case 'answer': {
        const message = calls.get(seen.call);
        if (message === undefined) break;
        settle(message, seen.outcome, report);
        if (seen.outcome !== 'ok') break;
        for (const account of accountsOf(message)) {
          raise(confirmed, account, timelines.place(account, message.sending.id));
        }
        break;
      }
      case 'page':
        raise(heads, seen.account, seen.entries.at(-1)?.sequence);
        break;
      case 'head':
        raise(heads, seen.account, seen.head);
        break;
      case 'removed':
        removed.add(seen.device);
        break;
    }
  }
  return messages;
}

function settle(message: Message, outcome: string, report: Report): void {
  if (openOutcomes.includes(outcome)) return;
  const now = outcome === 'ok' ? 'accepted' : 'refused';
  if (message.outcome !== 'open' && message.outcome !== now) {
    report('changed', `${message.sending.content} was ${message.outcome}, then ${outcome}`);
  }
  message.outcome = now;
}

function accountsOf({ sending }: Message): Set<string> {
  return new Set([sending.from, sending.to]);
}

function atMoment(known: ReadonlyMap<string, number>, { from, to }: Of<'sending'>) {
  return new Map([from, to].map((account) => [account, known.get(account) ?? -1]));
}

function raise(known: Map<string, number>, account: string, sequence = -1): void {
  known.set(account, Math.max(known.get(account) ?? -1, sequence));
}

/** Messages in timelines were sent, not refused, and come after those known before. */
function checkRecords(
  messages: ReadonlyMap<string, Message>,
  timelines: Timelines,
  report: Report,
): void {
  for (const [account, contents] of timelines.contents) {
    for (const [sequence, content] of contents) {
      const message = messages.get(content);
      if (message === undefined || !accountsOf(message).has(account)) {
        report('ghost', `${account} ${sequence}: ${content} was never sent`);
        continue;
      }
      if (message.outcome === 'refused') {
        report('ghost', `${account} ${sequence}: ${content} was refused`);
      }
      const confirmed = message.confirmedBefore.get(account) ?? -1;
      if (sequence <= confirmed) {
        report('swapped', `${account} ${sequence}: sent after ${confirmed} was confirmed`);
      }
      const seen = message.seenBefore.get(account) ?? -1;
      if (sequence <= seen) {
        report('backwards', `${account} ${sequence}: sent after ${seen} was seen`);
      }
    }
  }
}

interface Findings {
  readonly timelines: Timelines;
  readonly report: Report;
}

/** Every reader of a confirmed message was shown it, going on as well as reading again. */
function checkReaders(
  log: readonly LogEntry[],
  messages: ReadonlyMap<string, Message>,
  { timelines, report }: Findings,
): void {
  const removed = new Set(log.flatMap((seen) => (seen.kind === 'removed' ? [seen.device] : [])));
  const { on, again } = timelines.shown;
  for (const { outcome, sending } of messages.values()) {
    if (outcome !== 'accepted') continue;
    for (const device of sending.readers) {
      if (removed.has(device)) continue;
      if (!on.get(device)?.has(sending.content)) {
        report('lost', `${device} never got ${sending.content}`);
      }
      const all = again.get(device);
      if (all !== undefined && !all.has(sending.content)) {
        report('lost', `${device} did not find ${sending.content} again`);
      }
    }
  }
}

function checkHeads(log: readonly LogEntry[], timelines: Timelines, report: Report): void {
  const newest = new Map<string, number>();
  for (const seen of log) {
    if (seen.kind !== 'head') continue;
    const { device, connection, head, account } = seen;
    const key = `${device} ${connection}`;
    const before = newest.get(key) ?? -1;
    if (head < before) report('backwards', `${key} heard of ${head} after ${before}`);
    newest.set(key, Math.max(before, head));
    if (head > timelines.last(account)) {
      report('phantom', `${key} heard of ${head}, ${account} ends at ${timelines.last(account)}`);
    }
  }
}

function checkRemovals(
  log: readonly LogEntry[],
  messages: ReadonlyMap<string, Message>,
  { timelines, report }: Findings,
): void {
  const revisions = new Map<string, number>();
  for (const seen of log) {
    if (seen.kind === 'removing') revisions.set(seen.device, seen.revision);
    if (seen.kind === 'revision' && seen.revision >= (revisions.get(seen.device) ?? Infinity)) {
      report('late notice', `${seen.device} heard of revision ${seen.revision}`);
    }
  }
  const firstNew = firstAfterRemoval(messages, timelines);
  for (const seen of log) {
    if (seen.kind !== 'head') continue;
    const first = firstNew.get(`${seen.account} ${seen.device}`);
    if (first !== undefined && seen.head >= first) {
      report('late notice', `${seen.device} heard of ${seen.head}, removed before ${first}`);
    }
  }
}

/** By account and removed device: the first sequence of what was sent after the removal. */
function firstAfterRemoval(messages: ReadonlyMap<string, Message>, timelines: Timelines) {
  const first = new Map<string, number>();
  for (const message of messages.values()) {
    for (const account of accountsOf(message)) {
      const sequence = timelines.placeOf(account, message.sending);
      if (sequence === undefined) continue;
      for (const device of message.removedBefore) {
        const key = `${account} ${device}`;
        first.set(key, Math.min(first.get(key) ?? Infinity, sequence));
      }
    }
  }
  return first;
}

/** Who is served, and who is not. Authentications have rules of their own. */
function checkSessions(log: readonly LogEntry[], report: Report): void {
  const removing = new Set<string>();
  const removed = new Set<string>();
  const calls = new Map<number, { readonly seen: Of<'call'>; readonly wasRemoved: boolean }>();
  for (const seen of log) {
    if (seen.kind === 'removing') removing.add(seen.device);
    if (seen.kind === 'removed') removed.add(seen.device);
    if (seen.kind === 'call') {
      calls.set(seen.call, { seen, wasRemoved: removed.has(seen.device) });
    }
    if (seen.kind !== 'answer') continue;
    const call = calls.get(seen.call);
    if (call === undefined) continue;
    const { device, method, nonce } = call.seen;
    const text = `${device} ${method}: ${seen.outcome}`;
    if (seen.outcome === 'internal_error') report('internal error', text);
    if (call.wasRemoved) {
      const refusal = nonce === undefined ? 'unauthorized' : 'device_unknown';
      const passes = [refusal, 'lost', 'temporarily_unavailable', 'unauthorized'];
      if (!passes.includes(seen.outcome)) report('still served', text);
    } else if (seen.outcome === (nonce === undefined ? 'unauthorized' : 'device_unknown')) {
      if (!removing.has(device)) report('cut off', text);
    }
  }
}

function checkNonces(log: readonly LogEntry[], report: Report): void {
  const nonces = new Map<number, string>();
  const used = new Set<string>();
  for (const seen of log) {
    if (seen.kind === 'call' && seen.nonce !== undefined) nonces.set(seen.call, seen.nonce);
    if (seen.kind !== 'answer' || seen.outcome !== 'ok') continue;
    const nonce = nonces.get(seen.call);
    if (nonce === undefined) continue;
    if (used.has(nonce)) report('nonce reused', nonce);
    used.add(nonce);
  }
}

function of<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}
