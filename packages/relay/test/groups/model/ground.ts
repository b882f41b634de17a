/**
 * The state of the reference model, written from the tables of chapter 05 only: plain lists that are
 * searched each time. It signs nothing, stores nothing and knows no relay. This file has its types
 * and what all operations share.
 */
/** Codes a call may be answered with; several if the chapter allows a choice. */
export type Code =
  | 'ok'
  | 'bad_request'
  | 'clock_skew'
  | 'forbidden'
  | 'not_found'
  | 'state_conflict'
  | 'unauthorized';

/** A call that changes nothing, and what it may be answered with. */
export class Refusal extends Error {
  readonly codes: readonly Code[];
  constructor(...codes: readonly Code[]) {
    super(codes.join(' or '));
    this.codes = codes;
  }
}

export type Role = 'owner' | 'administrator' | 'member';
export type Policy = 'administrators' | 'members_targeted' | 'members_shareable';

/** A calling device. */
export interface Caller {
  readonly account: string;
  readonly device: string;
}

export interface Member {
  role: Role;
  key: string;
  since: number;
}

export interface Interval {
  readonly messagesFrom: number;
  readonly keysFrom: number;
  messagesTo: number;
  keysTo: number;
  isOpen: boolean;
  authority: boolean;
  /** Newest epoch delivered to the device. */
  delivered: number;
}

export interface ModelEvent {
  readonly sequence: number;
  readonly epoch: number;
  /** Of a message. */
  readonly message?: { readonly keepUntil: number };
  isGone: boolean;
}

/** An epoch with what opens it. */
export interface Epoch {
  readonly epoch: number;
  /** Name of the client secret in force. */
  readonly commitment: string;
  /** Until then it must be readable, and for as long as it is the current one. */
  keepUntil: number;
  isGone: boolean;
}

export interface Invite {
  readonly inviter: string;
  readonly invitee?: string | undefined;
  readonly maxUses?: number | undefined;
  readonly expiresAt: number;
  uses: number;
  isRevoked: boolean;
  /** Whether the job has found it expired. */
  isKnownOver: boolean;
  isForgotten: boolean;
}

export interface Application {
  readonly invite: string;
  readonly device: string;
  readonly key: string;
  readonly object: object;
}

export interface Recovery {
  readonly device: string;
  readonly key: string;
  readonly object: object;
  readonly acceptedAt: number;
  readonly expiresAt: number;
}

export interface Staging {
  readonly account: string;
  readonly base: string;
  readonly commitment: string;
  readonly expiresAt: number;
  /** Accounts with the key their box is for. */
  readonly boxes: Map<string, string>;
}

export interface Sent {
  readonly envelope: object;
  readonly sequence: number;
  readonly keepUntil: number;
}

/** Expected notices: by name, with recipients if the chapter names them. */
export interface Hints {
  readonly timeline?: true;
  readonly applications?: readonly string[];
  readonly recoveries?: readonly string[];
  /** May be omitted: nothing visible has changed. */
  readonly mayOmit?: 'applications';
}

export interface Settings {
  readonly now: () => number;
  readonly capacityCap: number;
  readonly banCap: number;
  readonly inviteTtl: number;
  readonly tolerance: number;
  readonly recoveryWait: number;
  readonly stagingPeriod: number;
  readonly retention: number;
}

/** Digests before and after a chain event. */
export interface Link {
  readonly prev: string;
  readonly next: string;
}

export class ModelGround {
  readonly settings: Settings;
  status: 'active' | 'closed' = 'active';
  name = 'club';
  description = '';
  policy: Policy = 'administrators';
  capacity: number;
  owner: string;
  /** Name of the client secret in force. */
  commitment: string;
  /** Digest of the last chain event. */
  head: string;
  sequence = 0;
  epoch = 0;
  readonly members = new Map<string, Member>();
  readonly bans = new Set<string>();
  readonly events: ModelEvent[] = [{ sequence: 0, epoch: 0, isGone: false }];
  readonly epochs: Epoch[] = [];
  /** By device. */
  readonly intervals = new Map<string, Interval[]>();
  readonly invites = new Map<string, Invite>();
  readonly applications = new Map<string, Application>();
  readonly recoveries = new Map<string, Recovery>();
  staging: Staging | undefined;
  /** By account and message ID. */
  readonly sent = new Map<string, Sent>();
  /** Devices of all current states, with the expiry of their certificates. */
  readonly devices = new Map<string, { readonly account: string; readonly expiresAt: number }>();
  /** All devices, valid or not, by account. */
  readonly accountDevices = new Map<string, string[]>();
  /** Inactive devices that the job has not processed yet. */
  readonly ended = new Set<string>();

  constructor(
    settings: Settings,
    founding: {
      readonly by: Caller;
      readonly key: string;
      readonly commitment: string;
      readonly head: string;
      readonly capacity: number;
    },
  ) {
    const { by, key, commitment, head, capacity } = founding;
    this.settings = settings;
    this.owner = by.account;
    this.capacity = capacity;
    this.commitment = commitment;
    this.head = head;
    this.members.set(by.account, { role: 'owner', key, since: 0 });
    this.addEpoch();
    this.open(by.device, 0, 0);
  }

  isValid(device: string): boolean {
    const known = this.devices.get(device);
    return known !== undefined && known.expiresAt > this.settings.now();
  }

  requireDevice({ device }: Caller): void {
    if (!this.isValid(device)) throw new Refusal('unauthorized');
  }

  /** A device of a current unbanned member (05 §6). */
  requireMember(by: Caller): Member {
    this.requireDevice(by);
    const member = this.members.get(by.account);
    if (member === undefined || this.bans.has(by.account)) throw new Refusal('forbidden');
    return member;
  }

  requireManager(by: Caller): Member {
    const member = this.requireMember(by);
    allow(member.role !== 'member');
    return member;
  }

  requireOwner(by: Caller): void {
    allow(this.requireMember(by).role === 'owner');
  }

  requireOpen(): void {
    if (this.status === 'closed') throw new Refusal('state_conflict');
  }

  /** Checked after every right: the group is open and the head is the current one (05 §5.2). */
  requireHead(prev: string): void {
    this.requireOpen();
    if (prev !== this.head) throw new Refusal('state_conflict');
  }

  /** Appends a management event; without a body it is the relay's own. */
  append(link: Link | undefined, { advances = false } = {}): void {
    this.sequence += 1;
    if (advances) {
      this.epoch += 1;
      this.addEpoch();
    }
    this.events.push({ sequence: this.sequence, epoch: this.epoch, isGone: false });
    if (link !== undefined) this.head = link.next;
  }

  addEpoch(): void {
    const { epoch, commitment } = this;
    this.epochs.push({ epoch, commitment, keepUntil: 0, isGone: false });
  }

  open(device: string, messagesFrom: number, keysFrom: number): void {
    const ends = { messagesTo: Number.POSITIVE_INFINITY, keysTo: Number.POSITIVE_INFINITY };
    const interval = { messagesFrom, keysFrom, ...ends, isOpen: true, authority: true };
    const others = this.intervals.get(device) ?? [];
    this.intervals.set(device, [...others, { ...interval, delivered: -1 }]);
  }

  /** At the head and in the epoch before the event that ends it (05 §10.3). */
  shut(device: string, authority: boolean): void {
    for (const interval of this.intervals.get(device) ?? []) {
      if (interval.isOpen) {
        interval.messagesTo = this.sequence;
        interval.keysTo = this.epoch;
        interval.isOpen = false;
      }
      interval.authority &&= authority;
    }
  }

  authorised(device: string): Interval[] {
    return (this.intervals.get(device) ?? []).filter(({ authority }) => authority);
  }

  /** Devices of an account in its last known state. */
  devicesOf(account: string): string[] {
    return this.accountDevices.get(account) ?? [];
  }

  managers(): string[] {
    return [...this.members].filter(([, { role }]) => role !== 'member').map(([each]) => each);
  }

  /** Managers who may process a request of an account with one of these roles (05 §6). */
  viewers(roles: readonly (Role | undefined)[]): string[] {
    return this.managers().filter((account) => account === this.owner || roles.includes('member'));
  }
}

export const conflictCode: readonly Code[] = ['state_conflict'];

export function allow(isAllowed: boolean): void {
  if (!isAllowed) throw new Refusal('forbidden');
}

export function conflictIf(isConflict: boolean): void {
  if (isConflict) throw new Refusal('state_conflict');
}

export function union(some: readonly string[], others: readonly string[]): string[] {
  return [...new Set([...some, ...others])];
}
