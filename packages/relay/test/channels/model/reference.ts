/**
 * A simple model of a channel after the tables of chapter 06: lists that are searched from end to
 * end. Each method returns the expected answer and changes the model.
 */
import type { ErrorCode } from '@posthouse/protocol';
import { canonicalJson, type JsonObject, type JsonValue } from '@posthouse/protocol/json';

/** A refusal with one of these codes; several if the chapter leaves open which. */
export class Refusal extends Error {
  readonly codes: readonly ErrorCode[];
  constructor(...codes: readonly ErrorCode[]) {
    super(codes.join(' or '));
    this.codes = codes;
  }
}

function require(condition: boolean, code: ErrorCode): void {
  if (!condition) throw new Refusal(code);
}

/** A calling device. */
export interface Caller {
  readonly account: string;
  readonly deviceId: string;
}

/** One event of the timeline, with its deadline. */
export interface Item {
  readonly sequence: number;
  readonly kind: 'descriptor' | 'post' | 'edit' | 'delete';
  readonly revision: number;
  readonly by: Caller;
  readonly payload: JsonObject;
  readonly acceptedAt: number;
  readonly keepUntil: number;
  /** The post of an edit or a deletion. */
  readonly post?: PostItem;
  isGone: boolean;
}

export interface PostItem extends Item {
  readonly kind: 'post';
  /** Body, attachments and unknown members after all edits. */
  state: ReadonlyMap<string, JsonValue>;
  deletion: Item | undefined;
  /** Neither readable nor stored as deleted any more. */
  isForgotten: boolean;
}

interface Descriptor extends JsonObject {
  readonly creator: string;
  readonly moderators?: string[];
  readonly revision: number;
  readonly status: string;
  readonly created_at: number;
  readonly updated_at: number;
}

/** A call with its parameters. */
export interface Call {
  readonly by: Caller;
  readonly params: JsonObject;
  /** Whether the calling device signed it. */
  readonly isSigned: boolean;
}

interface Report {
  readonly sequence: number;
  readonly by: Caller;
  readonly reason: JsonValue;
  readonly clearAfter: number;
}

export interface Settings {
  readonly now: () => number;
  readonly tolerance: number;
  readonly reportLimit: number;
  readonly reportPeriod: number;
}

const moderatorLimit = 10;
const blank = (text: unknown) => typeof text === 'string' && text.trim() === '';

/** Returns the members of an object without those named. */
function membersBut(object: JsonObject, names: readonly string[]): Map<string, JsonValue> {
  const members = Object.entries(object) as [string, JsonValue][];
  return new Map(members.filter(([name]) => !names.includes(name)));
}

/** Returns the state of a post as Canonical JSON. */
export const textOf = (state: ReadonlyMap<string, JsonValue>) =>
  canonicalJson(Object.fromEntries(state));

function hasContent(state: ReadonlyMap<string, JsonValue>): boolean {
  const attachments = state.get('attachments') as JsonValue[] | undefined;
  return state.has('body') || (attachments ?? []).length > 0;
}

function checkAttachments(attachments: JsonValue | undefined): void {
  const hashes = ((attachments ?? []) as JsonObject[]).map(({ hash }) => hash);
  require(new Set(hashes).size === hashes.length, 'bad_request');
}

/** Refuses `$context`, and `null` except at the root of an edit (01 J9). */
function checkNames(params: JsonObject, isEdit = false): void {
  require(!Object.hasOwn(params, '$context'), 'bad_request');
  for (const value of Object.values(params) as JsonValue[]) {
    const mayBeNull = value === null && isEdit;
    require(mayBeNull || !canonicalJson(value).includes('null'), 'bad_request');
  }
}

export class Reference {
  readonly settings: Settings;
  readonly items: Item[] = [];
  readonly reports: Report[] = [];
  descriptor: Descriptor;
  retention: number;

  constructor(
    settings: Settings,
    { by, params, retention }: Omit<Call, 'isSigned'> & { retention: number },
  ) {
    this.settings = settings;
    this.retention = retention;
    this.descriptor = params as Descriptor;
    this.#append('descriptor', { by, params });
  }

  get head(): number {
    return this.items.length - 1;
  }

  get posts(): PostItem[] {
    return this.items.filter((item): item is PostItem => item.kind === 'post');
  }

  get readablePosts(): PostItem[] {
    return this.posts.filter(({ isGone }) => !isGone);
  }

  /** Every event that `channel.read` returns. */
  get readable(): Item[] {
    return this.items.filter(({ isGone }) => !isGone);
  }

  /** 06 §8.2: the channel exists already, so that only the first checks differ. */
  create({ by, params, isSigned }: Call): void {
    checkNames(params);
    require(by.account === (params as Descriptor).creator, 'forbidden');
    require(isSigned, 'invalid_signature');
    require(params.channel_id === this.descriptor.channel_id, 'bad_request');
    throw new Refusal('state_conflict');
  }

  /** 06 §8.4; the form of the parameters comes before all else (06 §8). */
  update({ by, params, isSigned }: Call): void {
    const next = params as Descriptor;
    checkNames(params);
    this.#requireChannel(params);
    require(by.account === this.descriptor.creator, 'forbidden');
    const { moderators = [], description, creator } = next;
    const named = [creator, ...moderators];
    require(new Set(named).size === named.length &&
      moderators.length <= moderatorLimit, 'bad_request');
    require(description === '' || !blank(description), 'bad_request');
    require(next.created_at === this.descriptor.created_at, 'bad_request');
    require(next.status === 'active', 'bad_request');
    require(isSigned, 'invalid_signature');
    require(this.descriptor.status === 'active', 'state_conflict');
    this.#requireTime(next.updated_at);
    require(next.revision === this.descriptor.revision + 1, 'state_conflict');
    this.descriptor = next;
    this.#append('descriptor', { by, params });
  }

  /** 06 §8.5. */
  close({ by, params, isSigned }: Call): void {
    const { revision, updated_at, device_signature } = params as Descriptor;
    require(!Object.hasOwn(params, '$context'), 'bad_request');
    this.#requireChannel(params);
    require(by.account === this.descriptor.creator, 'forbidden');
    require(this.descriptor.status === 'active', 'state_conflict');
    require(revision === this.descriptor.revision + 1, 'state_conflict');
    this.#requireTime(updated_at);
    require(isSigned, 'invalid_signature');
    const mapped = { revision, updated_at, device_signature } as JsonObject;
    this.descriptor = { ...this.descriptor, ...mapped, status: 'closed' } as Descriptor;
    this.#append('descriptor', { by, params: this.descriptor });
  }

  /** 06 §8.7. Returns the sequence. */
  post({ by, params, isSigned }: Call): number {
    checkNames(params);
    checkAttachments(params.attachments);
    const state = membersBut(params, ['$type', 'channel_id', 'message_id', 'device_signature']);
    require(hasContent(state), 'bad_request');
    require(isSigned, 'invalid_signature');
    this.#requireChannel(params);
    const known = this.posts.find(
      (post) =>
        !post.isForgotten &&
        post.by.account === by.account &&
        post.payload.message_id === params.message_id,
    );
    if (known !== undefined) {
      require(canonicalJson(known.payload) === canonicalJson(params), 'state_conflict');
      return known.sequence;
    }
    this.#requireWriter(by);
    const post = this.#append('post', { by, params }) as PostItem;
    post.state = state;
    return post.sequence;
  }

  /** 06 §8.8. */
  edit({ by, params, isSigned }: Call): void {
    require((params.target_sequence as number) > 0, 'bad_request');
    checkNames(params, true);
    require(!Object.hasOwn(params, 'message_id'), 'bad_request');
    checkAttachments(params.attachments);
    const patch = membersBut(params, [
      '$type',
      'channel_id',
      'target_sequence',
      'device_signature',
    ]);
    require(patch.size > 0, 'bad_request');
    require(isSigned, 'invalid_signature');
    this.#requireChannel(params);
    this.#requireWriter(by);
    const post = this.#requireTarget(params);
    const state = new Map(post.state);
    for (const [name, value] of patch) {
      if (value === null) state.delete(name);
      else state.set(name, value);
    }
    require(hasContent(state), 'bad_request');
    if (textOf(state) === textOf(post.state)) return;
    this.#append('edit', { by, params, post });
    post.state = state;
  }

  /** 06 §8.9, §7.3. */
  delete({ by, params, isSigned }: Call): void {
    require((params.target_sequence as number) > 0, 'bad_request');
    checkNames(params);
    require(!blank(params.reason), 'bad_request');
    require(isSigned, 'invalid_signature');
    this.#requireChannel(params);
    this.#requireWriter(by);
    const post = this.#requireTarget(params);
    post.deletion = this.#append('delete', { by, params, post });
    this.#hide(post);
  }

  /** 06 §8.10. */
  report({ by, params }: Omit<Call, 'isSigned'>): void {
    const { target_sequence, reason } = params;
    require((target_sequence as number) > 0 && !blank(reason), 'bad_request');
    const { sequence } = this.#requireTarget(params);
    const own = this.reports.filter((report) => report.by.account === by.account);
    const before = own.find((report) => report.sequence === sequence);
    if (before === undefined) {
      require(own.length < this.settings.reportLimit, 'rate_limited');
    } else this.reports.splice(this.reports.indexOf(before), 1);
    const clearAfter = this.settings.now() + this.settings.reportPeriod;
    this.reports.push({ sequence, by, reason: reason as string, clearAfter });
  }

  /** 06 §8.11. */
  read({ before, after, limit }: { before?: number; after?: number; limit: number }) {
    require(before === undefined || after === undefined, 'bad_request');
    require(before === undefined || before >= 0, 'bad_request');
    require(after === undefined || after <= this.head, 'bad_request');
    if (after !== undefined) {
      const found = this.readable.filter(({ sequence }) => sequence > after);
      return { events: found.slice(0, limit), hasMore: found.length > limit };
    }
    const found = this.readable.filter(({ sequence }) => sequence < (before ?? Infinity));
    return { events: found.slice(-limit), hasMore: found.length > limit };
  }

  /** 06 §8.3. */
  resolve(revision = this.descriptor.revision): Item {
    require(revision >= 0, 'bad_request');
    const found = this.readable.find(
      (item) => item.kind === 'descriptor' && item.revision === revision,
    );
    if (found === undefined) throw new Refusal('not_found');
    return found;
  }

  /** Removes everything whose deadline has passed (06 §7.5). */
  clean(): void {
    const now = this.settings.now();
    for (const post of this.posts) {
      if (this.#end(post.deletion ?? post) > now) continue;
      post.isForgotten = true;
      this.#hide(post);
    }
    for (const item of this.items) {
      const isOld = item.kind === 'delete' || this.#isPast(item);
      if (isOld && this.#end(item) <= now) item.isGone = true;
    }
    const kept = this.reports.filter(({ clearAfter }) => clearAfter > now);
    this.reports.splice(0, this.reports.length, ...kept);
  }

  #isPast({ kind, revision }: Item): boolean {
    return kind === 'descriptor' && revision !== this.descriptor.revision;
  }

  /** Returns the time at which it can be removed. */
  #end(item: Item): number {
    if (item.kind === 'edit') return (item.post as Item).keepUntil;
    if (item.kind === 'delete') return Math.max(item.keepUntil, (item.post as Item).keepUntil);
    if (item.kind === 'post') return item.keepUntil;
    const needing = this.items.filter(
      ({ kind, revision }) => kind !== 'descriptor' && revision === item.revision,
    );
    return Math.max(item.keepUntil, ...needing.map((other) => this.#end(other)));
  }

  #hide(post: PostItem): void {
    post.isGone = true;
    for (const item of this.items) {
      if (item.kind === 'edit' && item.post === post) item.isGone = true;
    }
  }

  #append(
    kind: Item['kind'],
    { by, params, post }: Omit<Call, 'isSigned'> & { readonly post?: PostItem },
  ): Item {
    const acceptedAt = this.settings.now();
    const item = {
      ...{ kind, by, payload: params, acceptedAt, sequence: this.items.length },
      ...{ revision: this.descriptor.revision, keepUntil: acceptedAt + this.retention },
      ...(post === undefined ? {} : { post }),
      isGone: false,
    };
    this.items.push(item);
    return kind === 'post'
      ? Object.assign(item, { deletion: undefined, isForgotten: false })
      : item;
  }

  #requireChannel({ channel_id }: JsonObject): void {
    require(channel_id === this.items[0]?.payload.channel_id, 'not_found');
  }

  #requireTime(signedAt: number): void {
    const { now, tolerance } = this.settings;
    require(Math.abs(now() - signedAt) <= tolerance, 'clock_skew');
  }

  /** Checks the right to write before closure (06 §8). */
  #requireWriter({ account }: Caller): void {
    const { creator, moderators = [], status } = this.descriptor;
    require(account === creator || moderators.includes(account), 'forbidden');
    require(status === 'active', 'state_conflict');
  }

  #requireTarget({ target_sequence }: JsonObject): PostItem {
    const found = this.items.find(({ sequence }) => sequence === target_sequence);
    if (found === undefined) throw new Refusal('not_found');
    if (found.kind === 'post') {
      const post = found as PostItem;
      require(!post.isForgotten, 'not_found');
      require(post.deletion === undefined, 'state_conflict');
      return post;
    }
    if (!found.isGone) throw new Refusal('bad_request');
    // Hidden edits may be removed at once or a little later.
    throw found.kind === 'edit'
      ? new Refusal('bad_request', 'not_found')
      : new Refusal('not_found');
  }
}
