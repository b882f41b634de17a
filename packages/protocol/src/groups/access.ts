/**
 * Access intervals of one device: which messages and which epochs' keys the relay gives it
 * (05 §10). Management events are never limited. Present permission is checked before.
 */

/** Inclusive on both ends; open without `to`. */
interface AccessRange {
  readonly from: number;
  readonly to?: number;
}

/** One interval of a device in a group. */
export interface DeviceAccess {
  /** Of sequences. */
  readonly messages: AccessRange;
  /** Of epochs. */
  readonly keys: AccessRange;
  /** Whether its ranges may still be read: not after recovery, leave, removal or ban. */
  readonly authority: boolean;
}

/** A position of the timeline: its last event and that event's epoch. */
export interface TimelinePosition {
  readonly sequence: number;
  readonly epoch: number;
}

/**
 * Opens the interval of the device that created the group, or signed the application or the
 * recovery request an event approves: it begins with that event (05 §10.2).
 *
 * @example
 * const intervals = [openAccessAt(event)];
 */
export function openAccessAt(event: TimelinePosition): DeviceAccess {
  return {
    messages: { from: event.sequence },
    keys: { from: event.epoch },
    authority: true,
  };
}

/**
 * Opens the interval of any other device at its next successful subscription or synchronisation:
 * messages after the head, keys from the current epoch (05 §10.2).
 * @example
 * if (!hasOpenAccess(intervals)) intervals.push(openAccessAfter(group));
 */
export function openAccessAfter(head: TimelinePosition): DeviceAccess {
  return {
    messages: { from: head.sequence + 1 },
    keys: { from: head.epoch },
    authority: true,
  };
}

/**
 * Returns whether a device has a current interval, so that a successful call opens none.
 *
 * @example
 * if (!hasOpenAccess(intervals)) intervals.push(openAccessAfter(group));
 */
export function hasOpenAccess(intervals: readonly DeviceAccess[]): boolean {
  return intervals.some((each) => each.authority && each.messages.to === undefined);
}

/**
 * Closes an interval (05 §10.3). An interval that is closed already keeps its end, but loses its
 * authority if `authority` is `false`.
 *
 * @param at the head of the timeline and the epoch just before the closing operation
 * @param authority kept for an inactive device and a closed group, lost for recovery, leave,
 *   removal and ban
 * @example
 * const closed = intervals.map((each) => closeAccess(each, group, false));
 */
export function closeAccess(
  interval: DeviceAccess,
  at: TimelinePosition,
  authority: boolean,
): DeviceAccess {
  return {
    messages: { ...interval.messages, to: interval.messages.to ?? at.sequence },
    keys: { ...interval.keys, to: interval.keys.to ?? at.epoch },
    authority: interval.authority && authority,
  };
}

/**
 * Returns whether a message at a sequence may be read with a device's intervals.
 *
 * @example
 * const visible = [3, 4, 5].filter((sequence) => mayReadMessage(intervals, sequence));
 */
export function mayReadMessage(intervals: readonly DeviceAccess[], sequence: number): boolean {
  return intervals.some((each) => each.authority && covers(each.messages, sequence));
}

/**
 * Returns whether the keys of an epoch may be read with a device's intervals.
 *
 * @example
 * if (!mayReadKeys(intervals, group.epoch)) throw new ProtocolError('forbidden', 'keys');
 */
export function mayReadKeys(intervals: readonly DeviceAccess[], epoch: number): boolean {
  return intervals.some((each) => each.authority && covers(each.keys, epoch));
}

function covers({ from, to }: AccessRange, value: number): boolean {
  return from <= value && (to === undefined || value <= to);
}
