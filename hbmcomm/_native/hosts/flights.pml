/* Slices on their way between two hosts, several at a time.

   Code: hosts/flights.c

   Two hosts exchange two slices. A slice takes two steps, and a message of a step goes in two parts.
   Each exchange goes on when its own messages have come, so two hosts may begin the steps of
   different slices in different orders. A wire matches messages with equal tags in the order in which
   they were sent with receives in the order in which these began, and nothing else in any order. */
#define NO_TAG_OF_SLICE 1      /* add() */
#define NO_ORDER_OF_MESSAGES 2 /* add_parts() */
#define NO_WAIT_FOR_MESSAGES 3 /* is_blocked() */
#ifndef TWIN
#define TWIN 0
#endif

#define PART(slice, step, part) ((slice) * 4 + (step) * 2 + (part))
chan sent[4] = [8] of { byte };  /* host * 2 + tag: parts under way to it */
chan taken[4] = [8] of { byte }; /* receives that have begun */
byte came[16];                   /* host * 8 + part: 1 + the part that it has there */

proctype exchange(byte host, slice)
{
    byte step, tag = (TWIN == NO_TAG_OF_SLICE -> 0 : slice);
    do
    :: step == 2 -> break
    :: step < 2 ->
        atomic {
            taken[host * 2 + tag] ! PART(slice, step, 0);
            taken[host * 2 + tag] ! PART(slice, step, 1);
            sent[(1 - host) * 2 + tag] ! PART(slice, step, 0);
            sent[(1 - host) * 2 + tag] ! PART(slice, step, 1)
        }
        atomic {
            ((came[host * 8 + PART(slice, step, 0)] && came[host * 8 + PART(slice, step, 1)])
             || TWIN == NO_WAIT_FOR_MESSAGES) ->
            assert(came[host * 8 + PART(slice, step, 0)] == 1 + PART(slice, step, 0));
            assert(came[host * 8 + PART(slice, step, 1)] == 1 + PART(slice, step, 1));
            step++
        }
    od
}

active [4] proctype network()
{
    byte message, place;
end:
    do
    :: atomic {
        nempty(sent[_pid]) && nempty(taken[_pid]) ->
        sent[_pid] ? message;
        taken[_pid] ? place;
        came[(_pid / 2) * 8 + place] = 1 + message
    }
    :: atomic { /* a message overtakes another one */
        TWIN == NO_ORDER_OF_MESSAGES && len(sent[_pid]) > 1 ->
        sent[_pid] ? message;
        sent[_pid] ! message
    }
    od
}

init
{
    atomic { run exchange(0, 0); run exchange(0, 1); run exchange(1, 0); run exchange(1, 1) }
}
