/** Settings of V8 and Node for a relay that serves: short and few collections, and memory that is given back (0047). */
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, getPriority, setPriority } from 'node:os';
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** How much nicer V8's own threads are: of one core, the event loop gets nine tenths then. */
const nicer = 10;

/**
 * Bytes of the young generation at which it stops growing. Under load V8 would let it grow to 50 MiB:
 * a collection of it then holds the event loop for up to 14 ms.
 */
const youngGeneration = 12_582_912;

/** Bytes of a pool of small buffers; a buffer of half as many, or more, is allocated by itself. */
const bufferPool = 4_096;

/**
 * Makes the pools small in which Node puts small buffers: an answer that waits for a slow peer keeps
 * its whole pool in memory. Node's own have 64 KiB.
 */
export function boundBufferPools(): void {
  Buffer.poolSize = bufferPool;
}

/** Lets the young generation double when much of it survives, as V8 does by itself; or keeps its size. */
export function letYoungGenerationGrow(mayGrow: boolean): void {
  setFlagsFromString(`--semi-space-growth-factor=${mayGrow ? 2 : 1}`);
}

/** Lets the young generation grow up to a bound: its size is checked after each collection. */
export function boundYoungGeneration(): void {
  let mayGrow = true;
  letYoungGenerationGrow(mayGrow);
  new PerformanceObserver(() => {
    const isSmall = youngBytes() < youngGeneration;
    if (isSmall === mayGrow) return;
    mayGrow = isSmall;
    letYoungGenerationGrow(mayGrow);
  }).observe({ entryTypes: ['gc'] });
}

function youngBytes(): number {
  const spaces = getHeapSpaceStatistics();
  return spaces.find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
}

/**
 * Bytes outside of V8's heap, as those of connections and of what arrives, begin a collection with the
 * heap's own limit. Otherwise each 64 MiB of them begin one, several in a second under an attack.
 */
export function countExternalBytesInHeap(): void {
  setFlagsFromString('--external-memory-accounted-in-global-limit');
  // Node 24 has no such flag.
  const [major = 0] = process.versions.v8.split('.').map(Number);
  if (major >= 14) setFlagsFromString('--external-memory-max-growing-factor=4');
}

/**
 * Lowers the priority of V8's threads, which collect garbage and compile, if the process has one core:
 * each call would wait for their part of it. The event loop does not wait longer for them, since it
 * needs no core meanwhile. Changes nothing on other systems than Linux, and where it is not permitted.
 */
export function lowerHelperThreads(): void {
  if (availableParallelism() > 1) return;
  try {
    for (const thread of readdirSync('/proc/self/task')) {
      const name = readFileSync(`/proc/self/task/${thread}/comm`, 'utf8');
      if (!name.includes('V8Worker')) continue;
      setPriority(Number(thread), Math.min(19, getPriority(Number(thread)) + nicer));
    }
  } catch {}
}
