/** The session of a call: confirmed, unexpired, and of the call's origin. */
export type Session = DeviceSession | AccountSession;

export interface DeviceSession {
  /** Hash of its token, under which it is stored. */
  readonly id: string;
  readonly mode: 'device';
  readonly account: string;
  readonly deviceId: string;
  readonly expiresAt: number;
  /** The home relay of an account at home elsewhere, as its device was last confirmed. */
  readonly homeRelay?: string;
}

export interface AccountSession {
  readonly id: string;
  readonly mode: 'account';
  readonly account: string;
  readonly expiresAt: number;
}
