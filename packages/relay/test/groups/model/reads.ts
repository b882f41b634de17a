import {
  type Caller,
  type Code,
  conflictIf,
  type Epoch,
  type Hints,
  type Interval,
  type ModelEvent,
  Refusal,
} from './ground.ts';
import { ModelRequests } from './requests.ts';

/** Messages, and what devices may read of them and of everything else. */
export class ModelReads extends ModelRequests {
  send(
    by: Caller,
    message: { readonly id: string; readonly epoch: number; readonly createdAt: number },
    envelope: object,
  ): { readonly sequence: number; readonly hints: Hints } {
    this.requireMember(by);
    this.requireOpen();
    const key = `${by.account} ${message.id}`;
    const before = this.sent.get(key);
    if (before !== undefined) {
      conflictIf(before.envelope !== envelope);
      return { sequence: before.sequence, hints: {} };
    }
    const now = this.settings.now();
    const codes: Code[] = [];
    if (Math.abs(message.createdAt - now) > this.settings.tolerance) codes.push('clock_skew');
    if (message.epoch !== this.epoch) codes.push('state_conflict');
    if (codes.length > 0) throw new Refusal(...codes);
    this.sequence += 1;
    const keepUntil = now + this.settings.retention;
    const { sequence, epoch } = this;
    this.events.push({ sequence, epoch, message: { keepUntil }, isGone: false });
    this.sent.set(key, { envelope, sequence, keepUntil });
    const current = this.epochs.at(-1) as Epoch;
    current.keepUntil = Math.max(current.keepUntil, keepUntil);
    return { sequence, hints: { timeline: true } };
  }

  /** What a successful read does for a device that has no open interval. */
  enter({ device }: Caller): void {
    if (this.status === 'closed' || this.hasOpenInterval(device)) return;
    this.open(device, this.sequence + 1, this.epoch);
  }

  hasOpenInterval(device: string): boolean {
    return (this.intervals.get(device) ?? []).some(({ isOpen }) => isOpen);
  }

  sync(by: Caller, after: number): readonly ModelEvent[] {
    this.requireMember(by);
    if (after > this.sequence) throw new Refusal('bad_request');
    this.enter(by);
    return this.readable(by.device).filter(({ sequence }) => sequence > after);
  }

  /** Events a device of a member may read (05 §10.4). */
  readable(device: string): readonly ModelEvent[] {
    const intervals = this.authorised(device);
    return this.events.filter(({ sequence, message, isGone }) => {
      if (message === undefined) return true;
      const covers = ({ messagesFrom, messagesTo }: Interval) =>
        messagesFrom <= sequence && sequence <= messagesTo;
      return !isGone && intervals.some(covers);
    });
  }

  /** Epochs after one that a device may read, if they are still stored. */
  syncKeys(by: Caller, after: number): readonly Epoch[] {
    this.requireMember(by);
    if (after > this.epoch) throw new Refusal('bad_request');
    this.enter(by);
    const intervals = this.authorised(by.device);
    return this.epochs.filter(({ epoch, isGone }) => {
      const covers = ({ keysFrom, keysTo }: Interval) => keysFrom <= epoch && epoch <= keysTo;
      return !isGone && epoch > after && intervals.some(covers);
    });
  }

  /** Whether an epoch must still be stored (05 §11.3). */
  mustKeep({ epoch, keepUntil }: Epoch): boolean {
    return epoch === this.epoch || keepUntil > this.settings.now();
  }

  /** Records that an epoch's relay secret was delivered to a device (05 §7.3). */
  give({ device }: Caller, epoch: number): void {
    for (const interval of this.intervals.get(device) ?? []) {
      if (interval.isOpen) interval.delivered = Math.max(interval.delivered, epoch);
    }
  }

  subscribe(by: Caller): void {
    this.requireMember(by);
    this.enter(by);
  }

  /** Replaces the devices of an account; missing ones become inactive. */
  setDevices(account: string, devices: ReadonlyMap<string, number>): void {
    const before = this.devicesOf(account).filter((device) => this.devices.has(device));
    for (const device of before) {
      this.devices.delete(device);
      if (!devices.has(device)) this.ended.add(device);
    }
    for (const [device, expiresAt] of devices) {
      this.devices.set(device, { account, expiresAt });
      // Access that has not ended by now continues.
      if (this.isValid(device)) this.ended.delete(device);
    }
  }

  noteExpired(): void {
    for (const device of this.devices.keys()) if (!this.isValid(device)) this.ended.add(device);
  }

  /** Whether a call ends the access of a device before it is served. */
  get hasToEnd(): boolean {
    return [...this.ended].some((device) => this.hasOpenInterval(device));
  }

  /** Ends the access of devices, for good; sequences of the rotations that follow. */
  endDevices(): readonly number[] {
    const rotations = this.endHere();
    this.ended.clear();
    return rotations;
  }

  /** The same, as a call does it: the devices stay noted. */
  endHere(): readonly number[] {
    const account = (device: string) =>
      [...this.accountDevices].find(([, devices]) => devices.includes(device))?.[0] ?? '';
    const ended = [...this.ended]
      .filter((device) => !this.isValid(device))
      .sort((a, b) => (`${account(a)} ${a}` < `${account(b)} ${b}` ? -1 : 1));
    const rotations: number[] = [];
    for (const device of ended) {
      const open = this.intervals.get(device)?.find(({ isOpen }) => isOpen);
      if (open === undefined) continue;
      this.shut(device, true);
      if (open.delivered !== this.epoch || this.status === 'closed') continue;
      this.append(undefined, { advances: true });
      rotations.push(this.sequence);
    }
    return rotations;
  }

  /** Deletes expired messages, with their results. */
  clean(): void {
    const now = this.settings.now();
    for (const event of this.events) {
      if (event.message !== undefined && event.message.keepUntil <= now) event.isGone = true;
    }
    for (const [key, { keepUntil }] of this.sent) if (keepUntil <= now) this.sent.delete(key);
  }
}
