/**
 * A host that keeps every rule and does nothing the way ours does: what the chapters leave open it
 * decides otherwise, and wherever they permit to add, to leave out, to repeat, it does.
 */
import { gzipSync } from 'node:zlib';
import {
  type DeviceCertificate,
  deriveDeviceId,
  type MethodName,
  methods,
} from '@posthouse/protocol';
import type { Asked, HostileAnswers, Json, Refusal } from './hostile-answers.ts';
import { network } from './relay-with-clients.ts';

/** Every way in which the host is odd; a test may leave some out. */
export const manipulations = [
  /** Undefined members, in envelopes and in results, down to where objects are signed. */
  'members',
  /** Members of objects in another order. */
  'order',
  /** Pages of one record. */
  'pages',
  /** Pages that say there is more, and are followed by an empty one (02 §6). */
  'more',
  /** Certificates in another order, in another version, and of strangers (05 §13.4). */
  'certificates',
  /** Sequences with gaps between them (05 §4.3). */
  'gaps',
  /** Errors with other texts and data of their own. */
  'errors',
  /** Every method refuses once, for now: with a hint, with none, for one reason or another. */
  'refusals',
  /** Sessions end when it pleases the host. */
  'sessions',
  /** Notifications twice, late, not at all, and of unknown kinds. */
  'notifications',
  /** Answers later than what they bring about is told of, and in another order than asked for. */
  'late',
  /** WebSockets end when it pleases the host. */
  'ends',
  /** JSON with white space and escapes, content types in every legal form, coded bodies. */
  'texts',
] as const;
export type Manipulation = (typeof manipulations)[number];

const pages = new Set([
  ...['group.sync', 'group.key.sync', 'channel.read', 'message.timeline.sync'],
  ...['group.invite.list', 'group.application.list', 'group.member.recovery.list'],
]);

/** Refusals that pass, one after another. */
const passing: readonly Refusal[] = [
  { code: 'rate_limited', message: '' },
  { code: 'temporarily_unavailable', message: 'später', data: { since: 1 } },
  { code: 'rate_limited', message: 'slow', data: { retry_after: 0, more: [1] } },
  { code: 'bad_gateway', message: '' },
];

export class HostileHost implements HostileAnswers {
  /** Certificates of any device, by device: all their valid versions. */
  readonly versions = new Map<string, DeviceCertificate[]>();
  readonly #on: ReadonlySet<Manipulation>;
  readonly #count = new Map<string, number>();

  constructor(on: readonly Manipulation[] = manipulations) {
    this.#on = new Set(on);
  }

  ask({ method, params = {} }: Asked): Json {
    const asked = { ...params };
    if (this.#on.has('pages') && pages.has(method)) asked.limit = 1;
    if (this.#on.has('gaps') && method === 'group.sync' && asked.after !== undefined) {
      asked.after = real(Number(asked.after));
    }
    return asked;
  }

  instead({ method, params }: Asked) {
    const times = this.#counted(method);
    if (this.#on.has('more') && params?.cursor === lastCursor) return { result: emptyList(method) };
    if (method.startsWith('auth.') || method.startsWith('relay.')) return undefined;
    if (this.#on.has('refusals') && times === 1) {
      return { refusal: passing[this.#counted('refusals') % passing.length] as Refusal };
    }
    if (this.#on.has('sessions') && times % 7 === 3 && isRead(method)) {
      return { refusal: { code: 'unauthorized', message: 'ended' } as const };
    }
    return undefined;
  }

  answer({ method, params }: Asked, result: Json): Json {
    let told = structuredClone(result);
    if (this.#on.has('gaps') && method.startsWith('group.')) told = withGaps(told);
    if (this.#on.has('more')) told = promisingMore(method, params, told);
    const isPage = told.$type === undefined && told.certificates !== undefined;
    if (this.#on.has('certificates') && isPage) {
      told.certificates = this.#otherwise(told.certificates);
    }
    if (this.#on.has('members')) told = withMembers(told);
    return this.#on.has('order') ? reversed(told) : told;
  }

  refusal(refusal: Json): Json {
    if (!this.#on.has('errors')) return refusal;
    const { code, data } = refusal;
    return { extra: { is: 'ignored' }, data: { ...data, hint: ['a', 1] }, message: '', code };
  }

  notify(message: Json): readonly Json[] {
    if (!this.#on.has('notifications')) return [message];
    const { params } = message;
    const head = params.head === undefined ? {} : { head: this.#head(message) };
    const told = { ...message, params: { ...params, ...head, extra: 1 } };
    const unknown = { jsonrpc: '2.0', method: 'weather.changed', params: [1] };
    const also = { jsonrpc: '2.0', method: 'toString' };
    return this.#counted('notifications') % 3 === 0 ? [unknown] : [unknown, told, also, told];
  }

  envelope(message: Json): Json {
    if (!this.#on.has('members')) return message;
    // Names that other envelopes have mean nothing in this one (02 §3.8).
    const foreign = message.id === undefined ? { result: 1 } : { method: 'relay.info', params: 1 };
    return { trace: { id: null }, ...foreign, ...message, meta: [] };
  }

  text(text: string): string {
    if (!this.#on.has('texts')) return text;
    // Only what is outside of strings changes, and how the first letter of names is written.
    const spread = JSON.stringify(JSON.parse(text), undefined, 1);
    return ` \r\n\t${spread.replaceAll('"s', '"\\u0073')}\n`;
  }

  contentType(): string {
    const forms = [
      'application/json',
      'APPLICATION/JSON',
      'application/json;charset=utf-8',
      'application/json; charset="UTF-8"',
      'application/json ; version=1 ; Charset=Utf-8',
    ];
    const form = forms[this.#counted('types') % forms.length] as string;
    return this.#on.has('texts') ? form : 'application/json';
  }

  delay(): number {
    return this.#on.has('late') ? (this.#counted('late') % 3) * 4 : 0;
  }

  ends({ method }: Asked): boolean {
    // Only requests that may be repeated: the outcome of a write would be unknown.
    return this.#on.has('ends') && isRead(method) && this.#counted('answers') % 5 === 0;
  }

  coded(body: string) {
    return this.#on.has('texts') ? { coding: 'gzip', body: gzipSync(body) } : undefined;
  }

  /** Any version of each certificate, some more, and the last one first. */
  #otherwise(certificates: readonly DeviceCertificate[]): DeviceCertificate[] {
    const told = new Map<string, DeviceCertificate>();
    for (const certificate of certificates) {
      const id = deriveDeviceId(network, certificate);
      const versions = this.versions.get(id) ?? [certificate];
      told.set(id, versions[this.#counted('versions') % versions.length] as DeviceCertificate);
    }
    for (const [id, [certificate]] of this.versions) {
      if (!told.has(id) && certificate !== undefined) told.set(id, certificate);
    }
    return [...told.values()].reverse();
  }

  #head({ method, params }: Json): number {
    const isMapped = this.#on.has('gaps') && method === 'group.timeline.changed';
    return isMapped ? shown(params.head) : params.head;
  }

  #counted(what: string): number {
    const count = (this.#count.get(what) ?? 0) + 1;
    this.#count.set(what, count);
    return count;
  }
}

function isRead(method: string): boolean {
  const isWithout = methods[method as MethodName].session === 'none';
  return !isWithout && (pages.has(method) || method.endsWith('.resolve'));
}

/** Positions of groups: 0, 8, 15, 22 … */
function shown(sequence: number): number {
  return sequence === 0 ? 0 : sequence * 7 + 1;
}

/** The highest real position that is not above a shown one. */
function real(after: number): number {
  if (after < 1) return after;
  return Math.floor((after - 1) / 7);
}

function withGaps(result: Json): Json {
  if (Number.isInteger(result.sequence)) return { ...result, sequence: shown(result.sequence) };
  if (!Array.isArray(result.events)) return result;
  const events = result.events.map((each: Json) => ({ ...each, sequence: shown(each.sequence) }));
  return { ...result, events };
}

const lastCursor = 'the-end~';

function emptyList(method: string): Json {
  if (method === 'group.invite.list') return { invites: [], certificates: [] };
  return method === 'group.application.list' ? { applications: [] } : { requests: [] };
}

function promisingMore(method: string, params: Json, result: Json): Json {
  const { has_more: hasMore, next } = result;
  if (method === 'group.invite.list' || method === 'group.application.list') {
    const records = result.invites ?? result.applications;
    return next === undefined && records.length > 0 ? { ...result, next: lastCursor } : result;
  }
  if (hasMore === undefined || hasMore) return result;
  const records = result.events ?? result.items ?? result.keys;
  // Nothing is older than the creation.
  const isBackward = method === 'channel.read' && params.after === undefined;
  const isFirst = isBackward && records[0]?.sequence === 0;
  return records.length > 0 && !isFirst ? { ...result, has_more: true } : result;
}

/** Objects of other accounts, which the host returns unchanged. */
const given = new Set(['client_secret_box', 'key_box']);

/** Unknown members wherever nothing is signed; a `$type` says that something is. */
function withMembers(value: Json): Json {
  if (Array.isArray(value)) return value.map(withMembers);
  if (typeof value !== 'object' || value === null) return value;
  if (Object.hasOwn(value, '$type')) return value;
  const members = Object.entries(value).map(([name, each]) => [
    name,
    given.has(name) ? each : withMembers(each),
  ]);
  return { ...Object.fromEntries(members), x_unknown: { of: [1, 'two', { $type: 'x' }] } };
}

function reversed(value: Json): Json {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, each]) => [name, reversed(each)]);
  return Object.fromEntries(members.reverse());
}
