/** Every limit of a deployment, with its default; `checkRelayLimits` says how they depend. */
export interface RelayLimits {
  /** Seconds a challenge can be used (02 §18). */
  readonly challengeLifetime: number;
  /** Seconds of a device session, capped by the certificate (02 §10.2). */
  readonly deviceSessionLifetime: number;
  /** Seconds of an account session. */
  readonly accountSessionLifetime: number;
  /** Seconds a device's `timestamp` may differ from the relay's clock (02 §9.3). */
  readonly authClockTolerance: number;
  /** Seconds `updated_at` or `created_at` may lie ahead (01 §11 F4, 04 §3). */
  readonly futureTolerance: number;
  /** Seconds a signed query's `created_at` may lie behind (03 §5.6). */
  readonly signedQueryAge: number;
  /** Seconds an envelope may be old when it is taken for delivery (04 §3). */
  readonly deliveryAgeLimit: number;
  /** Seconds a pre-stored device state is kept (03 §4.2). */
  readonly stagingWindow: number;
  /** Pre-stored device states kept at once; anybody with a key may ask for one. */
  readonly stagedStates: number;
  /** Seconds; published as `message_retention` (04 §17.4). */
  readonly messageRetention: number;
  /** Bytes of one key box with its unknown members (04 §5). */
  readonly keyBoxBytes: number;
  /** Bytes of the credential of a delivery (04 §11). */
  readonly credentialBytes: number;
  /** Messages of one account that wait for delivery to other relays. */
  readonly queuedDeliveries: number;
  /** Deliveries from the queue under way at once. */
  readonly deliveryConcurrency: number;
  /** Seconds until a delivery is tried again, at first and at the most. */
  readonly deliveryRetryFirst: number;
  readonly deliveryRetryMost: number;
  /** Entries of a page without `limit`, and at the most. */
  readonly pageSize: number;
  readonly maxPageSize: number;
  /** Bytes of a page's text; a WebSocket message holds 1 MiB. */
  readonly pageBytes: number;
  /** Bytes of an HTTP request body (02 §18). */
  readonly httpBodyBytes: number;
  /** Requests under way on one WebSocket connection. */
  readonly outstandingRequests: number;
  /** Open WebSocket connections, in all and from one address. */
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** Bytes waiting in a connection's send buffer before it is ended as too slow. */
  readonly sendBufferBytes: number;
  /** Milliseconds a peer has for headers, for a body, and between pings. */
  readonly requestTimeout: number;
  readonly pingInterval: number;
  /** Calls of one account in a second, sustained, and at once. */
  readonly accountRate: number;
  readonly accountBurst: number;
  /** Calls without a session from one address in a second, and at once. */
  readonly addressRate: number;
  readonly addressBurst: number;
}

export const defaultLimits: RelayLimits = {
  challengeLifetime: 300,
  deviceSessionLifetime: 86_400,
  accountSessionLifetime: 3_600,
  authClockTolerance: 300,
  futureTolerance: 300,
  signedQueryAge: 300,
  deliveryAgeLimit: 604_800,
  stagingWindow: 86_400,
  stagedStates: 10_000,
  messageRetention: 2_592_000,
  keyBoxBytes: 4_096,
  credentialBytes: 65_536,
  queuedDeliveries: 1_000,
  deliveryConcurrency: 8,
  deliveryRetryFirst: 5,
  deliveryRetryMost: 900,
  pageSize: 100,
  maxPageSize: 500,
  pageBytes: 900_000,
  httpBodyBytes: 2_097_152,
  outstandingRequests: 64,
  connections: 20_000,
  connectionsPerAddress: 2_000,
  sendBufferBytes: 4_194_304,
  requestTimeout: 30_000,
  pingInterval: 30_000,
  accountRate: 200,
  accountBurst: 1_000,
  addressRate: 100,
  addressBurst: 1_000,
};
