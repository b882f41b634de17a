import { describe, expect, test } from 'vitest';
import { checkRelayLimits } from '../../src/limit-rules.ts';
import { defaultLimits, RelayLimits } from '../../src/limits.ts';

const faults = (changed: object) =>
  checkRelayLimits({ ...defaultLimits, ...changed }).map((sentence) => sentence.split(':')[0]);

describe('limits that do not fit each other', () => {
  test('the defaults fit', () => {
    expect(checkRelayLimits(defaultLimits)).toEqual([]);
  });

  test.each([
    ['pageBytes', { pageBytes: 1_048_576 - 16_384 }, { pageBytes: 1_048_576 - 16_384 + 1 }],
    ['pageBytes', { pageBytes: 262_144 + 16_384 }, { pageBytes: 262_144 + 16_384 - 1 }],
    ['channelPostBytes', { channelPostBytes: 65_536 }, { channelPostBytes: 65_535 }],
    ['keyBoxBytes', { keyBoxBytes: 765_952 }, { keyBoxBytes: 765_953 }],
    ['deliveriesPerRelay', { deliveriesPerRelay: 256 }, { deliveriesPerRelay: 257 }],
    ['relayCallsFirst', { relayCallsFirst: 128 }, { relayCallsFirst: 129 }],
    ['relayCallsAtOnce', { relayCallsAtOnce: 128 }, { relayCallsAtOnce: 129 }],
    ['relayStreams', { dhtStreams: 32 }, { dhtStreams: 33 }],
    ['deliveryLookups', { deliveryLookups: 256 }, { deliveryLookups: 257 }],
    ['deliveryRetryFirst', { deliveryRetryFirst: 900 }, { deliveryRetryFirst: 901 }],
    ['federationRegistryCheck', { federationRegistryCheck: 600 }, { federationRegistryCheck: 601 }],
    [
      'federationDescriptorForced',
      { federationDescriptorForced: 300 },
      { federationDescriptorForced: 301 },
    ],
    ['federationPeers', { federationPeers: 2_000 }, { federationPeers: 2_001 }],
    [
      'federationDescriptorPause',
      { federationDescriptorPause: 21_600 },
      { federationDescriptorPause: 21_601 },
    ],
    [
      'routeLookupsWithoutSession',
      { routeLookupsWithoutSession: 32 },
      { routeLookupsWithoutSession: 33 },
    ],
    ['routeLookupsEach', { routeLookupsEach: 32 }, { routeLookupsEach: 33 }],
    ['dhtQuestionTimeout', { dhtQuestionTimeout: 10_000 }, { dhtQuestionTimeout: 10_001 }],
    ['pageSize', { pageSize: 500 }, { pageSize: 501 }],
    ['httpBodyBytes', { httpBodyBytes: 1_048_576 }, { httpBodyBytes: 1_048_575 }],
    ['sendBufferBytes', { sendBufferBytes: 1_048_576 }, { sendBufferBytes: 1_048_575 }],
    ['connectionsPerAddress', { connectionsPerAddress: 20_000 }, { connectionsPerAddress: 20_001 }],
    ['strangerConnections', { strangerConnections: 20_000 }, { strangerConnections: 20_001 }],
    ['accountBytesBurst', { accountBytesBurst: 2_097_152 }, { accountBytesBurst: 2_097_151 }],
    [
      'receivedBytesPerAddress',
      { receivedBytesPerAddress: 4_194_304 },
      { receivedBytesPerAddress: 4_194_303 },
    ],
    [
      'receivedBytesPerAddress',
      { receivedBytesOfStrangers: 16_777_216 },
      { receivedBytesOfStrangers: 16_777_215 },
    ],
    ['receivedBytesOfStrangers', { receivedBytes: 67_108_864 }, { receivedBytes: 67_108_863 }],
    [
      'waitingBytesPerAddress',
      { waitingBytesPerAddress: 1_048_576 },
      { waitingBytesPerAddress: 1_048_575 },
    ],
    [
      'waitingBytesPerAccount',
      { waitingBytesPerAccount: 134_217_728 },
      { waitingBytesPerAccount: 134_217_729 },
    ],
    ['accountBurst', { accountBurst: 1_000 }, { accountBurst: 999 }],
    ['relayQueryBurst', { relayQueryBurst: 10 }, { relayQueryBurst: 9 }],
    ['relayQueriesOfAccount', { relayQueriesOfAccount: 256 }, { relayQueriesOfAccount: 257 }],
    ['relayQueriesToRelay', { relayQueriesToRelay: 256 }, { relayQueriesToRelay: 257 }],
    ['addressBurst', { addressBurst: 500 }, { addressBurst: 499 }],
    ['addressHandshakeBurst', { addressHandshakeBurst: 50 }, { addressHandshakeBurst: 49 }],
    [
      'addressHandshakesUnfinished',
      { addressHandshakesUnfinished: 2_000 },
      { addressHandshakesUnfinished: 2_001 },
    ],
  ])('%s at its edge and past it', (name, within, past) => {
    expect(faults(within)).toEqual([]);
    expect(faults(past)).toEqual([name]);
  });
});

test('the longest period ends at a time that is stored exactly', () => {
  const limits = Object.entries(RelayLimits.properties).map(([name, schema]) => {
    const { description = '', maximum = 0 } = schema as { description?: string; maximum?: number };
    return { name, description, maximum };
  });
  const periods = limits.filter(({ description }) => description.startsWith('Seconds'));
  expect(periods.length).toBeGreaterThan(15);
  // Times of this millennium and the next.
  const latest = 40_000_000_000;
  const unsafe = periods.filter(({ maximum }) => !Number.isSafeInteger(latest + maximum));
  expect(unsafe.map(({ name }) => name)).toEqual([]);
});
