#include <stdio.h>
#include "core/titin.h"

int main(void)
{
    puts("titin " TTN_VERSION);
    return TTN_EXIT_OK;
}
