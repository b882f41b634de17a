/** Every number of the protocol, named, with its chapter and section. Sizes are in bytes. */
export const limits = {
  /** 01 §2.1 J5: depth of every node, the root is 0. */
  jsonDepth: 16,
  /** 01 §8: complete Canonical JSON of a `DeviceCertificate`. */
  certificateBytes: 4_096,
  /** 01 §8: `expires_at - not_before` of a certificate, seconds (720 days). */
  certificatePeriod: 62_208_000,
  /** 01 §10: complete Canonical JSON of an `AccountDeviceState`. */
  deviceStateBytes: 131_072,
  /** 01 §10: certificates in a device state. */
  deviceStateCertificates: 8,
  /** 01 §11: complete Canonical JSON of an `AccountProfile`. */
  profileBytes: 8_192,
  /** 01 §11: UTF-8 of `nickname` and of a contact's `alias` (03 §17.2). */
  nicknameBytes: 256,
  /** 01 §11: UTF-8 of `bio`. */
  bioBytes: 2_048,
  /** 01 §17.1: complete Canonical JSON of a final `AccountRoute`. */
  routeBytes: 4_096,
  /** 01 §17.1: `expires_at - updated_at` of a route, seconds (3,650 days). */
  routePeriod: 315_360_000,
  /** 01 §12: UTF-8 of a registry, HTTPS or WSS address. */
  endpointBytes: 512,
  /** 01 §13: entries of `capabilities`. */
  capabilities: 64,
  /** 01 §13: UTF-8 of one capability. */
  capabilityBytes: 128,
  /** 01 §5.6: bytes of an unsigned varint. */
  varintBytes: 9,
  /** 02 §3.3: one WebSocket message. */
  webSocketMessageBytes: 1_048_576,
  /** 02 §3.4: UTF-8 of a JSON-RPC string id. */
  rpcIdBytes: 128,
  /** 02 §9.2, §10.1: visible ASCII characters of a nonce or a token. */
  tokenCharacters: 256,
  /** 02 §11.2: UTF-8 of a relay's `name`. */
  relayNameBytes: 256,
  /** 03 §15.1: UTF-8 of a consent's `note`. */
  consentNoteBytes: 1_024,
  /** 04 §3: complete Canonical JSON of a `MessageEnvelope`. */
  envelopeBytes: 262_144,
  /** 04 §5: key boxes in one set. */
  keyBoxes: 8,
  /** 06 §4: UTF-8 of a channel's `name`. */
  channelNameBytes: 256,
  /** 06 §4: UTF-8 of a channel's `description`. */
  channelDescriptionBytes: 4_096,
  /** 06 §4: entries of `moderators`. */
  channelModerators: 10,
  /** 06 §4: complete Canonical JSON of a `ChannelDescriptor`. */
  channelDescriptorBytes: 8_192,
  /** 06 §6: complete Canonical JSON of a post, an edit or a deletion. */
  channelContentBytes: 65_536,
  /** 05 §4.1: UTF-8 of a group's `name`. */
  groupNameBytes: 256,
  /** 05 §4.1: UTF-8 of a group's `description`. */
  groupDescriptionBytes: 4_096,
  /** 05 §4.12: complete Canonical JSON of a `GroupMessageEnvelope`. */
  groupMessageBytes: 262_144,
  /** 05 §12.2: Canonical JSON of the parameters of a group method that writes. */
  groupWriteBytes: 1_048_576,
  /** 07 §B3: one Noise handshake message, without the outer length. */
  handshakeMessageBytes: 65_535,
  /** 07 §B6: one DHT message. */
  dhtMessageBytes: 1_048_576,
  /** 07 §B8: a resource key of the DHT. */
  dhtKeyBytes: 32,
} as const;
