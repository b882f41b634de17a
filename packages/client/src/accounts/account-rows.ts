/** Stored rows about accounts, the own one and others. Binary values are base64url. */
import type {
  AccountDeviceState,
  AccountRoute,
  DeviceCertificate,
  FinalRoute,
  ResolvedProfile,
} from '@posthouse/protocol';
import { Collection } from '../store/collection.ts';

/** Which network a store belongs to: key `network` (01 N4). */
export interface NetworkRecord {
  readonly context: string;
  readonly word: string;
}
export const networkRecords = new Collection<NetworkRecord>('network');

/** The store's account: key `own`. */
export interface OwnRecord {
  readonly account: string;
  readonly publicKey: string;
  readonly deviceId: string;
  /**
   * Unix seconds until which this device, being new, waits for the contacts that other devices
   * know. Until then messages of unknown accounts are held instead of being refused. 0 for a first
   * device.
   */
  readonly awaitsContactsUntil: number;
}
export const ownRecords = new Collection<OwnRecord>('own');

/** Private keys of the device: key `device`. */
export interface DeviceKeys {
  readonly signingSeed: string;
  readonly encryptionKey: string;
  /** The account that they were made for; absent in stores of earlier versions. */
  readonly account?: string;
}
export const deviceKeys = new Collection<DeviceKeys>('device-keys');
export const accountKeys = new Collection<string>('account-keys');

/** The own device's latest certificate: key `own`. Stored before it is published (01 §8). */
export const ownCertificates = new Collection<DeviceCertificate>('certificates');

/** Highest verified device state of each account, from any relay (01 §10.2). */
export interface StateRecord {
  readonly state: AccountDeviceState;
  /** Unix milliseconds of the last read that confirmed it. */
  readonly checkedAt: number;
}
export const deviceStates = new Collection<StateRecord>('states');

/** Highest revision that a hint announced and no verified read reached yet (02 §12.4, 04 §7.4). */
export interface StateHint {
  readonly revision: number;
}
export const stateHints = new Collection<StateHint>('state-hints');

/** The known routes of an account (03 §3.4). */
export interface RouteRecord {
  /** Highest fully verified final route. */
  readonly route?: FinalRoute;
  /** A revision received with two contents; no revision up to it is used. */
  readonly conflict?: number;
  /** Last draft this client signed, for an unchanged retry and for the next revision. */
  readonly draft?: AccountRoute;
}
export const routes = new Collection<RouteRecord>('routes');

/** The verified profile of each account with the highest `updated_at`. */
export const profiles = new Collection<ResolvedProfile>('profiles');

/** A relay that holds, or held, the account's timeline. */
export interface TimelineRecord {
  /** Highest sequence up to which every record is completely processed; else -1. */
  readonly position: number;
  /**
   * The record at the position, as it was read: the relay must still have it there. Absent at the
   * beginning, and in rows written before it was stored.
   */
  readonly lastRecord?: LastRecord;
  /** Whether the relay dropped records before they were read, or lost records it had given. */
  readonly gap: boolean;
  /** When the relay was last restored, as it said; 0 if it never said so. Unix seconds. */
  readonly restoredAt?: number;
  /** Unix seconds at which it was last read from the beginning because of `restoredAt`. */
  readonly rereadAt?: number;
  /** Whether a rollback was reported; until a record is applied that was not known. */
  readonly rollback?: true;
}

/** What a record must equal to be the same one at the same sequence. */
interface LastRecord {
  /** Digest of the complete envelope. */
  readonly digest: string;
  /** Unix seconds, as the relay claims them. */
  readonly accepted_at: number;
}
export const timelines = new Collection<TimelineRecord>('timelines');

export const ownKey = 'own';
