/** The figures of a run, from what clients saw. They are for people; nothing is decided by them. */
import type { Problem } from './checker.ts';
import type { LogEntry } from './log.ts';

export interface Figures {
  /** Messages, by what became of them. */
  readonly accepted: number;
  readonly refused: number;
  readonly retried: number;
  /** Findings about messages that are missing, and about those that are there twice. */
  readonly lost: number;
  readonly doubled: number;
  /** Pages and heads that clients got. */
  readonly pages: number;
  readonly heads: number;
  readonly faults: readonly FaultFigures[];
}

interface FaultFigures {
  readonly name: string;
  /** Messages confirmed between its beginning and the recovery from it. */
  readonly accepted: number;
  /** Milliseconds between a sender's last success before and its first one after, the longest. */
  readonly longest: number;
  /** Milliseconds in which no sender at all had a success, the longest. */
  readonly everybody: number;
}

export function figuresOf(log: readonly LogEntry[], problems: readonly Problem[]): Figures {
  const sends = log.filter((seen) => seen.kind === 'call' && seen.content !== undefined).length;
  const outcomes = new Map<string, boolean>();
  for (const { content, isOk } of answeredSends(log)) {
    outcomes.set(content, outcomes.get(content) === true || isOk);
  }
  const accepted = [...outcomes.values()].filter(Boolean).length;
  return {
    accepted,
    refused: outcomes.size - accepted,
    retried: sends - log.filter(({ kind }) => kind === 'sending').length,
    lost: problems.filter(({ rule }) => rule === 'lost').length,
    doubled: problems.filter(({ rule }) => rule === 'doubled').length,
    pages: log.filter(({ kind }) => kind === 'page').length,
    heads: log.filter(({ kind }) => kind === 'head').length,
    faults: faultsOf(log),
  };
}

interface Send {
  readonly device: string;
  readonly content: string;
  readonly isOk: boolean;
  readonly at: number;
}

function answeredSends(log: readonly LogEntry[]): Send[] {
  const calls = new Map<number, { device: string; content: string }>();
  const sends: Send[] = [];
  for (const seen of log) {
    if (seen.kind === 'call' && seen.content !== undefined) {
      calls.set(seen.call, { device: seen.device, content: seen.content });
    }
    if (seen.kind !== 'answer') continue;
    const call = calls.get(seen.call);
    if (call !== undefined) sends.push({ ...call, isOk: seen.outcome === 'ok', at: seen.at });
  }
  return sends;
}

function faultsOf(log: readonly LogEntry[]): FaultFigures[] {
  const successes = answeredSends(log).filter(({ isOk }) => isOk);
  return log.flatMap((seen) => {
    if (seen.kind !== 'fault') return [];
    const end = log.find((other) => other.kind === 'recovered' && other.name === seen.name);
    const during = { from: seen.at, until: end?.at ?? Infinity };
    const senders = Map.groupBy(successes, ({ device }) => device);
    return [
      {
        name: seen.name,
        accepted: successes.filter(({ at }) => at >= during.from && at <= during.until).length,
        longest: Math.max(0, ...[...senders.values()].map((sends) => longestGap(sends, during))),
        everybody: longestGap(successes, during),
      },
    ];
  });
}

/** The longest time between one success and the next that lies in a period, in part at least. */
function longestGap(
  sends: readonly { readonly at: number }[],
  { from, until }: { readonly from: number; readonly until: number },
): number {
  let longest = 0;
  for (const [index, { at }] of sends.entries()) {
    const before = sends[index - 1]?.at;
    if (before !== undefined && at >= from && before <= until) {
      longest = Math.max(longest, at - before);
    }
  }
  return longest;
}

/** The figures as lines to print. */
export function describeFigures(figures: Figures): string[] {
  const { accepted, refused, retried, lost, doubled, pages, heads, faults } = figures;
  return [
    `messages accepted ${accepted}, refused ${refused}, lost ${lost}, doubled ${doubled}`,
    `sends tried again ${retried}; pages read ${pages}, heads heard ${heads}`,
    ...faults.map(
      (fault) =>
        `${fault.name}: ${fault.accepted} accepted; without a success for ` +
        `${Math.round(fault.longest)} ms (one sender), ${Math.round(fault.everybody)} ms (all)`,
    ),
  ];
}
